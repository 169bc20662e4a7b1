"""Host times of eager calls: how long a call takes until it returns, beside torch.distributed's own.

    TANDEM_LIBRARY=build/cuda/lib/libtandem_c.so tandem launch -n 1 python3 bench/python/host_times.py --out FILE.json
    tandem launch -n 2 python3 bench/python/host_times.py --device cpu    where calls end with their result

Forms of one operation alternate. A time is the median of the rounds, each the mean of 50 calls.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from tandem import _c
from tandem.torch import _native, _ops
from tandem.torch._collectives import CODES

CALLS, ROUNDS = 50, 15
Forms = dict[str, Callable[[], object]]


def operations(device: str, dtype: torch.dtype) -> dict[str, Forms]:
    """The forms of each operation. Maxima stay as they are, so calls in place may repeat."""
    group, size = dist.group.WORLD.group_name, dist.get_world_size()
    rows = 16 * size
    x = torch.ones(rows, 64 * size, device=device, dtype=dtype)
    w = x.new_ones(64, 64 * size)
    y, whole, world = torch.empty_like(x), x.new_empty(size * rows, 64 * size), tt.world_of(device=device)
    part = x.new_empty(16, 64)
    stream = torch.cuda.current_stream() if device == "cuda" else None
    # On CPUs it only enqueues, and the other forms wait.
    arguments = (world._handle, x.data_ptr(), y.data_ptr(), x.numel(), CODES[dtype], _c.OPERATIONS["max"])
    arguments += (stream.cuda_stream if stream else None,)

    def multiplied() -> object:
        z = x @ w.t()
        dist.all_reduce(z)
        return z

    def gathered() -> object:
        dist.all_gather_into_tensor(whole, x)
        return whole @ w.t()

    def scattered() -> object:
        dist.reduce_scatter_tensor(part, x @ w.t())
        return part

    def in_python(name: str, *arguments: object) -> Callable[[], object]:
        """The way that calls take where the operators without Python are not there."""

        def call() -> object:
            kept = _native._operator, _native._products
            _native._operator = _native._products = None
            try:
                with _ops._below_autograd():
                    return getattr(torch.ops.tandem, name)(*arguments)
            finally:
                _native._operator, _native._products = kept

        return call

    return {
        "all_reduce": {
            "torch.distributed": lambda: dist.all_reduce(x, dist.ReduceOp.MAX),
            "functional": lambda: functional.wait_tensor(functional.all_reduce(x, "max", group)),
            "torch.ops.tandem": lambda: torch.ops.tandem.all_reduce(x, "max", group),
            "tandem.torch": lambda: tt.all_reduce(x, "max"),
            "kernel in Python": in_python("all_reduce", x, "max", group),
            "tandem.World": lambda: world.all_reduce(x, "max", out=y, stream=stream),
            "C API by ctypes": lambda: _c.call("all_reduce", *arguments),
        },
        "all_gather": {
            "torch.distributed": lambda: dist.all_gather_into_tensor(whole, x),
            "torch.ops.tandem": lambda: torch.ops.tandem.all_gather(x, group),
            "tandem.torch": lambda: tt.all_gather(x),
        },
        "matmul_all_reduce": {
            "matmul, torch.distributed": multiplied,
            "torch.ops.tandem": lambda: torch.ops.tandem.matmul_all_reduce(x, w.t(), None, "none", group),
            "tandem.torch": lambda: tt.matmul_all_reduce(x, w.t()),
            "kernel in Python": in_python("matmul_all_reduce", x, w.t(), None, "none", group),
        },
        "all_gather_matmul": {
            "torch.distributed, matmul": gathered,
            "torch.ops.tandem": lambda: torch.ops.tandem.all_gather_matmul(x, [w.t()], [], "none", False, group),
            "tandem.torch": lambda: tt.all_gather_matmul(x, w.t()),
            "kernel in Python": in_python("all_gather_matmul", x, [w.t()], [], "none", False, group),
        },
        "matmul_reduce_scatter": {
            "matmul, torch.distributed": scattered,
            "torch.ops.tandem": lambda: torch.ops.tandem.matmul_reduce_scatter(x, w.t(), None, "none", group),
            "tandem.torch": lambda: tt.matmul_reduce_scatter(x, w.t()),
            "kernel in Python": in_python("matmul_reduce_scatter", x, w.t(), None, "none", group),
        },
    }


def host_us(call: Callable[[], object], device: str) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    us = (time.perf_counter() - begin) / CALLS * 1e6
    if device == "cuda":
        torch.cuda.synchronize()
    dist.barrier()
    return us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where the tensors are")
    parser.add_argument("--out", help="a JSON file for the results")
    arguments = parser.parse_args()
    if arguments.device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if arguments.device == "cuda" else "gloo")
    dtype = torch.bfloat16 if arguments.device == "cuda" else torch.float32
    rows = []
    with torch.no_grad():
        for name, forms in operations(arguments.device, dtype).items():
            times: dict[str, list[float]] = {form: [] for form in forms}
            for round_ in range(ROUNDS + 1):
                for form, call in forms.items():
                    us = host_us(call, arguments.device)
                    if round_ > 0:  # the first one makes plans
                        times[form].append(us)
            for form, values in times.items():
                us, least, most = statistics.median(values), min(values), max(values)
                rows.append({"operation": name, "form": form, "us": us, "least_us": least, "most_us": most})
                if dist.get_rank() == 0:
                    print(f"{name:21} {form:26} {us:7.1f} us ({least:.1f} to {most:.1f})", flush=True)
            if arguments.out and dist.get_rank() == 0:  # after each operation: time may run out
                with open(arguments.out, "w") as file:
                    head = {"version": torch.__version__, "processes": dist.get_world_size()}
                    json.dump(head | {"rows": rows}, file, indent=1)
    tt.shutdown()
    dist.destroy_process_group()


main()
