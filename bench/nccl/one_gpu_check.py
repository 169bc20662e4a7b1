#!/usr/bin/env python3
"""Checks PyTorch's `nccl` backend with one rank on one GPU, whatever library carries it.

  tandem launch -n 1 --nccl python3 bench/nccl/one_gpu_check.py
  python3 bench/nccl/one_gpu_check.py                       # PyTorch's own NCCL

It prints the library that answers, what fails, and "N passed, N failed". The exit code is 1 if anything failed.
"""
import ctypes
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist

passed, failed = 0, []


def check(name, run):
    """Counts `run()`, which returns whether the result is right."""
    global passed
    try:
        if run():
            passed += 1
            return
        failed.append(name)
    except Exception as error:  # pylint: disable=broad-except
        failed.append(f"{name}: {error}")
    print("FAILED", failed[-1], flush=True)


def values(dtype, count=1037):
    return (torch.arange(count, device="cuda") % 7 + 1).to(dtype)


def reduced(dtype, op, factor=1, group=None):
    data = values(dtype)
    dist.all_reduce(data, op=op, group=group)
    return torch.equal(data, values(dtype) * factor)


def check_reductions():
    ops = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
    for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64, torch.half, torch.bfloat16, torch.float, torch.double):
        for name, op in ops.items():
            check(f"all_reduce {name} {dtype}", lambda dtype=dtype, op=op: reduced(dtype, op))
    for dtype in (torch.half, torch.float, torch.double):
        scalar = torch.tensor([3], dtype=dtype, device="cuda")
        for name, factor in (("value", 3.0), ("memory", scalar)):
            op = dist._make_nccl_premul_sum(factor)  # pylint: disable=protected-access
            check(f"all_reduce premul_sum {dtype} of a {name}", lambda dtype=dtype, op=op: reduced(dtype, op, 3))
    check("all_reduce avg", lambda: reduced(torch.float, dist.ReduceOp.AVG))


def moved(call):
    data, out = values(torch.float), torch.zeros(1037, device="cuda")
    call(out, data)
    return torch.equal(out, data)


def check_moves():
    check("all_gather", lambda: moved(dist.all_gather_into_tensor))
    check("reduce_scatter", lambda: moved(dist.reduce_scatter_tensor))
    check("all_to_all", lambda: moved(dist.all_to_all_single))
    check("broadcast", lambda: dist.broadcast(values(torch.float), 0) is None)
    check("barrier", lambda: dist.barrier() is None)


def check_groups():
    """Groups, each in a stream of its own."""
    groups = [dist.new_group([0]) for _ in range(6)]
    streams = [torch.cuda.Stream() for _ in groups]
    for turn in range(50):
        for number, (group, stream) in enumerate(zip(groups, streams)):
            with torch.cuda.stream(stream):
                check(f"group {number}, turn {turn}", lambda group=group: reduced(torch.float, dist.ReduceOp.SUM, 1, group))


def captured(op, factor):
    data = values(torch.float)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(data, op=op)
    results = []
    for turn in range(3):
        data.copy_(values(torch.float) + turn)
        graph.replay()
        torch.cuda.synchronize()
        results.append(torch.equal(data, (values(torch.float) + turn) * factor))
    return all(results)


def check_graphs():
    check("graph sum", lambda: captured(dist.ReduceOp.SUM, 1))
    factor = torch.tensor([3.0], device="cuda")
    check("graph premul_sum", lambda: captured(dist._make_nccl_premul_sum(factor), 3))  # pylint: disable=protected-access


def main():
    file = os.path.join(tempfile.mkdtemp(prefix="one_gpu_check_"), "store")
    torch.cuda.set_device(0)
    torch.zeros(1, device="cuda")
    free = torch.cuda.mem_get_info()[0]
    begin = time.perf_counter()
    dist.init_process_group("nccl", init_method="file://" + file, rank=0, world_size=1)
    dist.all_reduce(torch.zeros(1, device="cuda"))
    torch.cuda.synchronize()
    print(f"start {time.perf_counter() - begin:.2f} s, {(free - torch.cuda.mem_get_info()[0]) >> 20} MiB of the GPU")
    try:
        identity = ctypes.CDLL("libnccl.so.2").tandem_nccl_identity
        identity.restype = ctypes.c_char_p
        print("answered by", identity().decode())
    except AttributeError:
        print("answered by another NCCL")
    for part in (check_reductions, check_moves, check_groups, check_graphs):
        part()
    dist.destroy_process_group()
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
