#!/usr/bin/env python3
"""PyTorch's asynchronous tensor parallelism (torch.ops.symm_mem) on the layers of operators_bench.

    python3 -m torch.distributed.run --standalone --nproc-per-node GPUS operators_torch.py --out FILE
        [--rounds 5] [--calls 20] OP:M:N:K ...

OP is all_gather_gemm or gemm_reduce_scatter, M, N, K the global problem, as in tandem/operators.h. bf16, random normal
data. Graphs of up to --calls calls take turns with graphs of torch.matmul alone on the gathered problem, replay by
replay; where the operator cannot be captured, its calls are enqueued one by one. A time is the median over the rounds
of the slowest rank.
"""

import argparse
import json
import os
import statistics
import sys

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symm_mem  # noqa: E402


class Turn:
    """Some calls between two events, in a graph where they can be captured."""

    def __init__(self, call, calls):
        self.call, self.calls = call, calls
        self.begin = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        for _ in range(2):
            call()
        torch.cuda.synchronize()
        try:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
                for _ in range(calls):
                    call()
        except RuntimeError as error:
            print(f"operators_torch: no graph: {error}".splitlines()[0], file=sys.stderr)
            self.graph = None
        torch.cuda.synchronize()

    def us(self):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        self.call()  # brings the ranks together
        self.begin.record()
        if self.graph is None:
            for _ in range(self.calls):
                self.call()
        else:
            self.graph.replay()
        self.end.record()
        torch.cuda.synchronize()
        own = torch.tensor([self.begin.elapsed_time(self.end) * 1000 / self.calls], device="cuda", dtype=torch.float64)
        dist.all_reduce(own, op=dist.ReduceOp.MAX)
        return own.item()


def matrices(op, m, n, k, rank, ranks):
    """This rank's A and B^T, as PyTorch's linear layers have them."""
    torch.manual_seed(1 + rank)
    gather = op == "all_gather_gemm"
    rows, depth, columns = (m // ranks, k, n // ranks) if gather else (m, k // ranks, n)
    a = torch.randn(rows, depth, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(columns, depth, device="cuda", dtype=torch.bfloat16)
    return a, b


def is_right(op, a, b, got, group):
    """Compares some rows with collectives and matmul in f32."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    rows = torch.arange(0, got.shape[0], max(1, got.shape[0] // 16), device="cuda")
    if op == "all_gather_gemm":
        gathered = torch.empty(a.shape[0] * ranks, a.shape[1], device="cuda", dtype=a.dtype)
        dist.all_gather_into_tensor(gathered, a, group=group)
        want = gathered[rows].float() @ b.float().t()
    else:
        shard = a.shape[0] // ranks
        # What every rank is asked for, in rank order: its own rows.
        parts = torch.cat([a[owner * shard + rows] for owner in range(ranks)]).float() @ b.float().t()
        want = torch.empty(len(rows), b.shape[0], device="cuda", dtype=torch.float32)
        dist.reduce_scatter_tensor(want, parts, group=group)
    error = (got[rows].float() - want).abs().max() / want.abs().max()
    worst = torch.tensor([error.item()], device="cuda")
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return bool(worst.item() < 0.02)


def measure(op, m, n, k, args, group):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    a, b = matrices(op, m, n, k, rank, ranks)
    gather = op == "all_gather_gemm"
    if gather:
        call = lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [b.t()], 0, group.group_name)[1][0]  # noqa: E731
    else:
        call = lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b.t(), "sum", 0, group.group_name)  # noqa: E731
    whole = torch.randn(m, a.shape[1], device="cuda", dtype=torch.bfloat16) if gather else a
    alone = lambda: torch.matmul(whole, b.t())  # noqa: E731
    right = is_right(op, a, b, call(), group)
    flops = 2.0 * m * b.shape[0] * a.shape[1]
    calls = max(2, min(args.calls, int(60000 / (flops / 680e6))))
    turns = [Turn(call, calls), Turn(alone, calls)]
    times = [[], []]
    for _ in range(args.rounds + 1):
        for turn, own in zip(turns, times):
            own.append(turn.us())
    return {
        "op": op, "m": m, "n": n, "k": k, "pes": ranks,
        "us": statistics.median(times[0][1:]), "matmul_us": statistics.median(times[1][1:]),
        "graph": turns[0].graph is not None, "right": right,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("problems", nargs="+")
    args = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    group = dist.group.WORLD
    if hasattr(symm_mem, "enable_symm_mem_for_group"):
        symm_mem.enable_symm_mem_for_group(group.group_name)
    rows = []
    for text in args.problems:
        op, m, n, k = text.split(":")
        rows.append(measure(op, int(m), int(n), int(k), args, group))
        if dist.get_rank() == 0:
            with open(args.out, "w") as file:
                json.dump({"torch": torch.__version__, "rows": rows}, file, indent=1)
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
