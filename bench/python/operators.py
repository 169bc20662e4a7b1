"""Operators of tandem.torch beside PyTorch's own, in CUDA graphs of up to 20 calls.

    TANDEM_LIBRARY=build/gpu/lib/libtandem_c.so tandem launch -n 2 python3 bench/python/operators.py --out FILE.json
    tandem launch -n 2 python3 bench/python/operators.py --device cpu     tiny sizes without graphs, as a test of it

Forms of one operator alternate, and each time is that of the slowest process: the median of the rounds. `host` is the
time until an eager call returns. The form `C API` is a plan of its own that runs by tandem_plan_run_with.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import time
from collections.abc import Callable

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.nn.functional as F
from tandem import _c
from tandem._plan import OperatorPlan
from tandem.torch import _groups
from tandem.torch._collectives import CODES

CALLS, MOST_WORK, ROUNDS, EPSILON = 20, 4e12, 11, 1e-5
# Rows, columns and depth over all processes; rows and elements of a row.
LARGE = {
    "all_gather_matmul": [(8192, 10240, 8192), (8192, 28672, 8192), (8192, 57344, 8192)],
    "matmul_reduce_scatter": [(8192, 8192, 8192), (8192, 8192, 28672)],
    "matmul_all_reduce": [(16, 8192, 8192), (16, 8192, 28672), (64, 8192, 28672)],
    "all_reduce_norm": [(rows, 8192) for rows in (1, 16, 64, 256, 1024, 4096)],
}
TINY = {name: [(32, 64, 64)] for name in LARGE} | {"all_reduce_norm": [(3, 64)]}
Forms = dict[str, Callable[[], torch.Tensor]]


class Bench:
    """This process, its device, and the tensors of a problem."""

    def __init__(self, device: str) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.on_gpus = device == "cuda"
        if self.on_gpus:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", self.rank)))
        self.device, self.dtype = device, torch.bfloat16 if self.on_gpus else torch.float32
        dist.init_process_group("nccl" if self.on_gpus else "gloo", rank=self.rank, world_size=self.size)
        self.group = dist.group.WORLD.group_name

    def random(self, seed: int, *shape: int) -> torch.Tensor:
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randn(*shape, generator=generator, device=self.device, dtype=self.dtype) * shape[-1] ** -0.5

    def collective(self, name: str, out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        getattr(dist, name)(out, x)
        return out

    def planned(self, name: str, m: int, n: int, k: int, x: torch.Tensor, w: torch.Tensor, *c: int) -> Forms:
        """The form that C++ has: one plan for these rows, and no tensor made."""
        plan = OperatorPlan(tt.world_of(device=self.device), name, m, [n], k, type=CODES[self.dtype])
        out = x.new_empty(c)
        b, made = _c.addresses([w.data_ptr()]), _c.addresses([out.data_ptr()])

        def call() -> torch.Tensor:
            plan.run(m, _groups.stream_of(x), a=x.data_ptr(), b=b, c=made)
            return out

        return {"C API": call}

    def all_gather_matmul(self, m: int, n: int, k: int) -> Forms:
        x, w = self.random(self.rank, m // self.size, k), self.random(9, n // self.size, k).t()
        whole = x.new_empty(m, k)
        forms: Forms = {
            "tandem": lambda: tt.all_gather_matmul(x, w),
            "separate": lambda: self.collective("all_gather_into_tensor", whole, x) @ w,
            **self.planned("all_gather_gemm", m, n, k, x, w, m, n // self.size),
        }
        if self.on_gpus:
            fused = torch.ops.symm_mem.fused_all_gather_matmul
            forms["symm_mem"] = lambda: fused(x, [w], 0, self.group, return_A=False)[1][0]
        return forms

    def matmul_reduce_scatter(self, m: int, n: int, k: int) -> Forms:
        x, w = self.random(self.rank, m, k // self.size), self.random(9 + self.rank, n, k // self.size).t()
        part = x.new_empty(m // self.size, n)
        forms: Forms = {
            "tandem": lambda: tt.matmul_reduce_scatter(x, w),
            "separate": lambda: self.collective("reduce_scatter_tensor", part, x @ w),
            **self.planned("gemm_reduce_scatter", m, n, k, x, w, m // self.size, n),
        }
        if self.on_gpus:
            fused = torch.ops.symm_mem.fused_matmul_reduce_scatter
            forms["symm_mem"] = lambda: fused(x, w, "sum", 0, self.group)
        return forms

    def all_reduced(self, y: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(y)
        return y

    def matmul_all_reduce(self, m: int, n: int, k: int) -> Forms:
        x, w = self.random(self.rank, m, k // self.size), self.random(9 + self.rank, n, k // self.size).t()
        return {
            "tandem": lambda: tt.matmul_all_reduce(x, w),
            "separate": lambda: self.all_reduced(x @ w),
            **self.planned("gemm_all_reduce", m, n, k, x, w, m, n),
        }

    def all_reduce_norm(self, rows: int, hidden: int) -> Forms:
        x, residual = self.random(self.rank, rows, hidden), self.random(8, rows, hidden)
        weight, partial = self.random(9, 1, hidden)[0], x.clone()

        def norm(y: torch.Tensor) -> torch.Tensor:
            return F.rms_norm(y + residual, (hidden,), weight, EPSILON)

        behind = torch.compile(norm) if self.on_gpus else norm
        return {
            "tandem": lambda: tt.all_reduce_norm(x, residual, weight, epsilon=EPSILON)[0],
            "separate": lambda: behind(self.all_reduced(partial.copy_(x))),
        }

    def host_us(self, call: Callable[[], torch.Tensor], calls: int) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        us = (time.perf_counter() - begin) / calls * 1e6
        self.synchronize()
        return us

    def synchronize(self) -> None:
        if self.on_gpus:
            torch.cuda.synchronize()
        dist.barrier()

    def captured(self, call: Callable[[], torch.Tensor], calls: int) -> Callable[[], None]:
        """Returns a function that runs the call so often."""
        if not self.on_gpus:
            return lambda: [call() for _ in range(calls)] and None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        return graph.replay

    def timed_us(self, run: Callable[[], None], calls: int) -> float:
        """The time of one of the calls of `run`, of the slowest process."""
        self.synchronize()
        begin = time.perf_counter()
        if self.on_gpus:
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            run()
            events[1].record()
            events[1].synchronize()
            us = events[0].elapsed_time(events[1]) * 1000
        else:
            run()
            us = (time.perf_counter() - begin) * 1e6
        slowest = torch.tensor(us / calls, device=self.device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return float(slowest)

    def measure(self, name: str, shape: tuple[int, ...]) -> list[dict[str, object]]:
        """One row for each form. Raises where results differ by more than rounding."""
        forms: Forms = getattr(self, name)(*shape)
        results = {form: call().float() for form, call in forms.items()}
        wanted = results["separate"]
        for form, got in results.items():
            error = float((got - wanted).abs().max() / wanted.abs().max())
            if error > (0.03 if self.on_gpus else 1e-4):
                raise SystemExit(f"{name} {shape}: {form} differs by {error} of the largest value")
        calls = max(2, min(CALLS, int(MOST_WORK / math.prod(shape))))
        host = {form: self.host_us(call, calls) for form, call in forms.items()}
        runs = {form: self.captured(call, calls) for form, call in forms.items()}
        times: dict[str, list[float]] = {form: [] for form in forms}
        for _ in range(ROUNDS):
            for form, run in runs.items():
                times[form].append(self.timed_us(run, calls))
        return [
            {"operator": name, "shape": shape, "form": form, "us": statistics.median(values), "host_us": host[form]}
            for form, values in times.items()
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where the tensors are")
    parser.add_argument("--only", default=".", help="operators whose names match this regular expression")
    parser.add_argument("--out", help="a JSON file for the results")
    arguments = parser.parse_args()
    bench = Bench(arguments.device)
    rows: list[dict[str, object]] = []
    for name, shapes in (LARGE if bench.on_gpus else TINY).items():
        for shape in shapes if re.search(arguments.only, name) else ():
            measured = bench.measure(name, shape)
            rows += measured
            for row in measured if bench.rank == 0 else ():
                size = "x".join(map(str, shape))
                print(
                    f"{name:22} {size:16} {row['form']:9} {row['us']:9.1f} us, host {row['host_us']:7.1f} us",
                    flush=True,
                )
    if arguments.out and bench.rank == 0:
        with open(arguments.out, "w") as file:
            json.dump({"version": torch.__version__, "processes": bench.size, "rows": rows}, file, indent=1)
    tt.shutdown()
    dist.destroy_process_group()


main()
