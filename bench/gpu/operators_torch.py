#!/usr/bin/env python3
"""PyTorch's operators on symmetric memory (torch.ops.symm_mem), in turns with operators_bench, which starts this.

all_gather_gemm and gemm_reduce_scatter: asynchronous tensor parallelism. gemm_all_reduce, for which it has no fused
operator: torch.matmul and then one_shot_all_reduce, or from 4 MB on two_shot_all_reduce_.

    operators_torch.py GPUS

Reads commands from its standard input, one a line, and answers each with a line of JSON on its standard output:

    prepare OP M N K CALLS   graphs of CALLS calls of the operator, and of torch.matmul alone on the gathered problem
                             -> {"right": whether results are, "graph": whether the operator could be captured}
    turn                     runs both once -> {"us": ..., "matmul_us": ...}, of a call on the slowest rank

or with {"error": why}. It says {"torch": version} when it is ready, and ends where its input does. OP and the global
problem M, N, K are those of tandem/operators.h. bf16, random normal data. Where the operator cannot be captured, its
calls are enqueued one by one. Between commands the GPUs are idle.
"""

import json
import os
import socket
import sys
import traceback
import warnings

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symm_mem  # noqa: E402
import torch.multiprocessing  # noqa: E402


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
    ranks = dist.get_world_size()
    rows = torch.arange(0, got.shape[0], max(1, got.shape[0] // 16), device="cuda")
    if op == "all_gather_gemm":
        gathered = torch.empty(a.shape[0] * ranks, a.shape[1], device="cuda", dtype=a.dtype)
        dist.all_gather_into_tensor(gathered, a, group=group)
        want = gathered[rows].float() @ b.float().t()
    elif op == "gemm_all_reduce":
        want = a[rows].float() @ b.float().t()
        dist.all_reduce(want, group=group)
    else:
        shard = a.shape[0] // ranks
        # Each rank's own rows, in rank order.
        parts = torch.cat([a[owner * shard + rows] for owner in range(ranks)]).float() @ b.float().t()
        want = torch.empty(len(rows), b.shape[0], device="cuda", dtype=torch.float32)
        dist.reduce_scatter_tensor(want, parts, group=group)
    error = (got[rows].float() - want).abs().max() / want.abs().max()
    worst = torch.tensor([error.item()], device="cuda")
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return bool(worst.item() < 0.02)


def all_reduced_product(a, b, group):
    """A call of it; sums lie in symmetric memory, as its all-reduces want them."""
    product = symm_mem.empty(a.shape[0], b.shape[0], device="cuda", dtype=a.dtype)
    symm_mem.rendezvous(product, group.group_name)
    ops, few = torch.ops.symm_mem, product.numel() * product.element_size() < 4 << 20

    def call():
        torch.matmul(a, b.t(), out=product)
        reduce = ops.one_shot_all_reduce if few else ops.two_shot_all_reduce_
        return reduce(product, "sum", group.group_name)

    return call


class Problem:
    """This rank's part of one, ready to be timed."""

    def __init__(self, op, m, n, k, calls, group):
        a, b = matrices(op, m, n, k, dist.get_rank(), dist.get_world_size())
        name = group.group_name
        if op == "all_gather_gemm":
            whole = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            call = lambda: torch.ops.symm_mem.fused_all_gather_matmul(a, [b.t()], 0, name)[1][0]  # noqa: E731
        elif op == "gemm_all_reduce":
            whole = a
            call = all_reduced_product(a, b, group)
        else:
            whole = a
            call = lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b.t(), "sum", 0, name)  # noqa: E731
        self.right = is_right(op, a, b, call(), group)
        self.turns = [Turn(call, calls), Turn(lambda: torch.matmul(whole, b.t()), calls)]


class Rank:
    """The work of every rank with a command."""

    def __init__(self):
        self.group = dist.group.WORLD
        if hasattr(symm_mem, "enable_symm_mem_for_group"):
            with warnings.catch_warnings(action="ignore"):  # newer releases need no call
                symm_mem.enable_symm_mem_for_group(self.group.group_name)
        self.problem = None

    def answer(self, words):
        if words[0] == "prepare":
            self.problem = None
            torch.cuda.empty_cache()
            self.problem = Problem(words[1], *map(int, words[2:6]), self.group)
            return {"right": self.problem.right, "graph": self.problem.turns[0].graph is not None}
        if words[0] == "turn":
            return dict(zip(("us", "matmul_us"), [turn.us() for turn in self.problem.turns]))
        raise ValueError(f"{words[0]}: no such command")


def serve(rank, ranks, port, answers):
    """Rank 0 reads commands and answers; None for `answers`: another rank, which is told."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))  # fmt: skip
    control = dist.new_group(backend="gloo")  # the GPUs are others' while a rank waits
    own = Rank()
    if answers:
        print(json.dumps({"torch": torch.__version__}), file=answers, flush=True)
    while True:
        line = [sys.stdin.readline() if answers else None]
        dist.broadcast_object_list(line, 0, group=control)
        if not line[0]:
            break
        try:
            result = own.answer(line[0].split())
        except Exception as error:
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        results = [None] * ranks
        dist.all_gather_object(results, result, group=control)
        failed = [one for one in results if "error" in one]
        if answers:
            print(json.dumps((failed or results)[0]), file=answers, flush=True)
    own.problem = None
    torch.cuda.synchronize()
    os._exit(0)  # what the libraries would tidy up may wait for peers that are gone


def main():
    ranks = int(sys.argv[1])
    # Standard output is for answers alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn = torch.multiprocessing.get_context("spawn")
    for rank in range(1, ranks):
        spawn.Process(target=serve, args=(rank, ranks, port, None), daemon=True).start()
    serve(0, ranks, port, answers)


if __name__ == "__main__":
    main()
