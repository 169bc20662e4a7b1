"""The steps of a served layer between its matrix products, beside NCCL, PyTorch's symmetric memory and Triton.

    TANDEM_LIBRARY=build/gpu/lib/libtandem_c.so tandem launch -n 2 python3 bench/python/layers.py --out FILE.json
    tandem launch -n 2 python3 bench/python/layers.py --device cpu    tiny sizes without graphs, as a test of it

Each form of a call is a CUDA graph of up to 20 calls. The graphs alternate, and a time is that of one call of the
slowest process: the median of the rounds. Before that, results are compared with those of the first form. No result is
compared if another problem gives it: other scales, another order, or a product without a collective.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import re
import statistics
import sys
import time
import traceback
from collections.abc import Callable

import tandem.torch as tt
import torch
import torch.distributed as dist
from layers_forms import Layers

CALLS, MOST_US, TOLERANCE = 20, 20000, 0.08
OTHER_RESULTS = (
    "tandem all_to_all", "tandem blocks", "tandem sum alone", "_scaled_mm alone", "_scaled_mm alone, sums in f32",
)  # fmt: skip
ROWS = [(rows, 8192) for rows in (1, 16, 64, 256, 1024, 4096)]
SHAPES = {
    "all_reduce_norm": ROWS,
    "all_reduce_norm_fp8": ROWS,
    "all_reduce": [*ROWS, (512, 8192)],
    "gemm_all_reduce_norm": [(m, 8192, k) for k in (8192, 28672) for m in (1, 16, 64)],
    "merge_heads": [(1, 64, 128), (16, 128, 128), (64, 128, 128), (16, 128, 512)],
    "exchange_heads": [(16384, 32, 128)],
    "all_gather_scaled": [
        (1024, 57344, 8192), (8192, 10240, 8192), (8192, 28672, 4096), (8192, 18432, 16384), (8192, 57344, 8192),
        (8192, 49152, 12288), (8192, 106496, 16384),
    ],
    "scaled_reduce_scatter": [
        (1024, 8192, 28672), (8192, 4096, 14336), (8192, 8192, 8192), (8192, 8192, 28672), (8192, 12288, 49152),
        (8192, 16384, 53248),
    ],
}  # fmt: skip
TINY = {
    "all_reduce_norm": [(3, 256)], "all_reduce_norm_fp8": [(3, 256)], "all_reduce": [(5, 256)], "merge_heads": [(3, 8, 64)],
    "gemm_all_reduce_norm": [(3, 128, 64)],
    "exchange_heads": [(6, 4, 32)], "all_gather_scaled": [(64, 512, 256)], "scaled_reduce_scatter": [(64, 256, 512)],
}  # fmt: skip


class Timed:
    """A form's graph of calls, or on CPUs the calls themselves."""

    def __init__(self, layers: Layers, call: Callable[[], object], calls: int) -> None:
        self.layers, self.call, self.calls = layers, call, calls
        if not layers.on_gpus:
            return
        self.graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            for _ in range(calls):
                call()
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.word = torch.zeros(1, device="cuda")

    def us(self) -> float:
        dist.barrier(self.layers.control)
        if not self.layers.on_gpus:
            begin = time.perf_counter()
            for _ in range(self.calls):
                self.call()
            own = (time.perf_counter() - begin) * 1e6
        else:
            torch.cuda._sleep(400_000)  # until all is enqueued
            dist.all_reduce(self.word)
            self.graph.replay()
            self.begin.record()
            self.graph.replay()
            self.end.record()
            torch.cuda.synchronize()
            own = self.begin.elapsed_time(self.end) * 1000
        return self.layers.largest(own / self.calls)


class Bench(Layers):
    """Measures the forms of all calls, and survives one that fails on all processes."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.control = dist.new_group(backend="gloo")

    def largest(self, value: float) -> float:
        of_all = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(of_all, dist.ReduceOp.MAX, group=self.control)
        return float(of_all)

    def synchronize(self) -> None:
        if self.on_gpus:
            torch.cuda.synchronize()
        dist.barrier(self.control)

    def first_us(self, call: Callable[[], object]) -> float:
        """The time of a later call, in microseconds, about."""
        for _ in range(2):
            self.synchronize()
            begin = time.perf_counter()
            call()
            self.synchronize()
        return self.largest((time.perf_counter() - begin) * 1e6)

    def attempt(self, name: str, work: Callable[[], object]) -> object:
        """Returns the result of `work`, or None where any process failed."""
        result, failed = None, 0.0
        try:
            result = work()
        except Exception:
            print(f"layers: {name} on rank {self.rank}", file=sys.stderr)
            traceback.print_exc()
            failed = 1.0
        return None if self.largest(failed) > 0 else result

    def measure(self, name: str, shape: tuple[int, ...], rounds: int) -> dict:
        row: dict = {"call": name, "shape": shape, "us": {}, "spread": {}, "error": {}, "failed": []}
        forms = self.attempt(name, lambda: getattr(self, name)(*shape)) or {}
        self.timing, wanted, right = False, None, {}
        for form, call in forms.items():  # each changes its own data alone, once
            got = self.attempt(f"{name} {shape} {form}", lambda call=call: call().float().cpu())
            if got is None:
                row["failed"].append(form)
                continue
            right[form] = call
            if form in OTHER_RESULTS:
                continue
            wanted = got if wanted is None else wanted
            row["error"][form] = round(self.largest(float((got - wanted).abs().max() / wanted.abs().max())), 5)
        self.timing, timed = True, {}
        for form, call in right.items():
            calls = max(1, min(CALLS, int(MOST_US / self.first_us(call))))
            made = self.attempt(f"{name} {shape} {form}", lambda call=call, calls=calls: Timed(self, call, calls))
            if made is None:
                row["failed"].append(form)
            else:
                timed[form] = made
        times: dict[str, list[float]] = {form: [] for form in timed}
        for i in range(-1, rounds):
            for form, one in timed.items():
                us = one.us()
                if i >= 0:
                    times[form].append(us)
        for form, values in times.items():
            row["us"][form] = round(statistics.median(values), 3)
            row["spread"][form] = [round(min(values), 3), round(max(values), 3)]
        return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where the tensors are")
    parser.add_argument("--only", default=".", help="calls whose names match this regular expression")
    parser.add_argument("--rounds", type=int, default=11, help="replays of each graph")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no call after so many")
    parser.add_argument("--out", help="a JSON file for the rows, which is written after each of them")
    options = parser.parse_args()
    begin, wrong = time.monotonic(), 0
    if options.seconds < 1e6:
        faulthandler.dump_traceback_later(options.seconds)  # where a process stands that should have ended
    bench = Bench(options.device)
    head = {"command": " ".join(sys.argv), "torch": torch.__version__, "processes": bench.size, "rows": []}
    if bench.on_gpus:
        head |= {"gpu": torch.cuda.get_device_name(), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    for name, shapes in (SHAPES if bench.on_gpus else TINY).items():
        for shape in shapes if re.search(options.only, name) else ():
            if bench.largest(time.monotonic() - begin) > options.seconds:
                continue
            row = bench.measure(name, shape, options.rounds)
            wrong += len(row["failed"]) + sum(error > TOLERANCE for error in row["error"].values())
            head["rows"].append(row)
            if bench.rank != 0:
                continue
            times = ", ".join(
                f"{form} {us:.2f}" + (" WRONG" if row["error"].get(form, 0) > TOLERANCE else "")
                for form, us in row["us"].items()
            )
            failed = f", failed: {', '.join(row['failed'])}" if row["failed"] else ""
            print(f"{name} {'x'.join(map(str, shape))}: {times}{failed}", flush=True)
            if options.out:
                with open(options.out, "w", encoding="utf-8") as file:
                    json.dump(head, file, indent=1)
    bench.synchronize()
    bench.kept.clear()
    tt.shutdown()
    dist.destroy_process_group()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
