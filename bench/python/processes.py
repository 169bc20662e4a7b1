"""The processes of a benchmark: their numbers, times in turns, and a file of results."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import tandem.torch as tt
import torch
import torch.distributed as dist

Call = Callable[[], Any]


class Member:
    """This process as one of a launch, and its device. GPUs have a process each."""

    def __init__(self, device: str) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device, self.on_gpus = device, device == "cuda"
        if self.on_gpus:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", self.rank)))
        dist.init_process_group("cpu:gloo,cuda:nccl" if self.on_gpus else "gloo", rank=self.rank, world_size=self.size)
        self.group = dist.group.WORLD.group_name


class Processes(Member):
    """A member that measures beside the others."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.dtype = torch.bfloat16 if self.on_gpus else torch.float32
        self.control = dist.new_group(backend="gloo")

    def random(self, seed: int, *shape: int) -> torch.Tensor:
        """Numbers that a sum over the last axis of another such tensor leaves in their range."""
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randn(*shape, generator=generator, device=self.device, dtype=self.dtype) * shape[-1] ** -0.5

    def largest(self, value: float) -> float:
        """The largest value of all processes."""
        of_all = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(of_all, dist.ReduceOp.MAX, group=self.control)
        return float(of_all)

    def graph(self, call: Call) -> Call:
        """The call as a graph, or on CPUs the call itself. It has run before."""
        if not self.on_gpus:
            return call
        torch.cuda.synchronize()
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made, capture_error_mode="thread_local"):
            call()
        return made.replay

    def us(self, call: Call) -> float:
        """The time of the slowest process for one call that follows another one."""
        dist.barrier(self.control)
        if not self.on_gpus:
            begin = time.perf_counter()
            call()
            return self.largest((time.perf_counter() - begin) * 1e6)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(400_000)  # until all is enqueued
        call()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return self.largest(begin.elapsed_time(end) * 1000)

    def in_turns(self, forms: dict[str, Call], rounds: int) -> dict[str, list[float]]:
        """Medians, and the least and the most, of forms that take turns. A first round does not count."""
        times: dict[str, list[float]] = {form: [] for form in forms}
        for _ in range(rounds + 1):
            for form, call in forms.items():
                times[form].append(self.us(call))
        values = {form: measured[1:] for form, measured in times.items()}
        return {form: [round(f(one), 1) for f in (statistics.median, min, max)] for form, one in values.items()}

    def head(self) -> dict[str, Any]:
        """The machine and the versions, for a file of results."""
        head: dict[str, Any] = {"command": " ".join(sys.argv), "torch": torch.__version__, "processes": self.size}
        if self.on_gpus:
            head |= {"gpu": torch.cuda.get_device_name(), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        return head | {"predicted": False, "rows": []}

    def write(self, results: dict[str, Any], path: str | None) -> None:
        """Writes a file of results, so far."""
        if path and self.rank == 0:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)

    def add(self, results: dict[str, Any], row: dict[str, Any], path: str | None, tolerance: float, text: str) -> int:
        """Adds a row, writes the file and prints a line. Returns the number of forms with an error above `tolerance`."""
        results["rows"].append(row)
        self.write(results, path)
        wrong = [name for name, error in row["error"].items() if error > tolerance]
        if self.rank == 0:
            times = ", ".join(f"{name} {us:.0f}" for name, us in row["us"].items())
            print(text.format(times=times) + f"; WRONG: {', '.join(wrong)}" * bool(wrong), flush=True)
        return len(wrong)

    def end(self) -> None:
        """Leaves all worlds and groups."""
        if self.on_gpus:
            torch.cuda.synchronize()
        dist.barrier(self.control)
        tt.shutdown()
        dist.destroy_process_group()
