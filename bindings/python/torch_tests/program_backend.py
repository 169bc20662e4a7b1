"""The calls of torch.distributed on the backend "tandem" give what they give on gloo or NCCL; DDP trains alike."""

from __future__ import annotations

import warnings

import tandem
import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from common import DEVICE, join

rank, size = join("cpu:tandem")
other = dist.new_group(backend="nccl" if DEVICE == "cuda" else "gloo")
OPERATIONS = (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX)


def both(call, *arguments):
    """Calls `call(group)` for both backends and compares."""
    mine, theirs = call(None, *arguments), call(other, *arguments)
    assert len(mine) == len(theirs)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs)), (call, mine, theirs)


def all_reduce(group, op, dtype):
    x = (torch.arange(10) + rank + 1).to(dtype)
    dist.all_reduce(x, op, group=group)
    return [x]


def broadcast(group, x):
    x = x.clone(memory_format=torch.preserve_format if group is None else torch.contiguous_format)
    dist.broadcast(x, 1, group=group)
    return [x]


def all_gather(group):
    out = [torch.empty(3) for _ in range(size)]
    dist.all_gather(out, torch.full((3,), float(rank)), group=group)
    return out


def all_gather_into_tensor(group):
    out = torch.empty(size * 3, 2)
    dist.all_gather_into_tensor(out, torch.full((3, 2), float(rank)), group=group)
    return [out]


def reduce_scatter_tensor(group):
    out = torch.empty(3)
    dist.reduce_scatter_tensor(out, torch.arange(3.0 * size) + rank, group=group)
    return [out]


def reduce(group):
    x = torch.full((3,), float(rank))
    dist.reduce(x, 1, group=group)
    return [x] if rank == 1 else []


def gather(group):
    out = [torch.empty(2) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.full((2,), float(rank)), out, 0, group=group)
    return out or []


def scatter(group):
    out = torch.empty(2)
    parts = [torch.full((2,), float(i)) for i in range(size)] if rank == 1 else None
    dist.scatter(out, parts, 1, group=group)
    return [out]


def all_to_all_single(group):
    out = torch.empty(size * 2)
    dist.all_to_all_single(out, torch.arange(2.0 * size) + 10 * rank, group=group)
    return [out]


def all_to_all_parts(group):
    sent, coming = [i + 1 for i in range(size)], [rank + 1] * size
    out = torch.empty(sum(coming))
    dist.all_to_all_single(out, torch.arange(float(sum(sent))) + 100 * rank, coming, sent, group=group)
    return [out]


def opts_of(root):
    made = dist.BroadcastOptions()
    made.rootRank = root
    return made


def ring(group):
    x, got = torch.full((4,), float(rank)), torch.empty(4)
    if rank == 0:
        dist.send(x, 1, group=group)
        dist.recv(got, size - 1, group=group)
    else:
        dist.recv(got, rank - 1, group=group)
        dist.send(x, (rank + 1) % size, group=group)
    return [got]


def objects(group):
    out = [None] * size
    dist.all_gather_object(out, {"rank": rank}, group=group)
    assert out == [{"rank": i} for i in range(size)]
    return []


for op in OPERATIONS:
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.int8):
        both(all_reduce, op, dtype)
for x in (
    torch.full((3, 2), float(rank)).t(),
    torch.tensor([True, False, rank == 1]),
):
    both(broadcast, x)
for x in (torch.tensor(rank, dtype=torch.int16), torch.full((2, 2), 1j * rank)):  # gloo has no such types
    assert broadcast(None, x)[0].eq(1j if x.is_complex() else 1).all()
for call in (
    all_gather,
    all_gather_into_tensor,
    reduce_scatter_tensor,
    reduce,
    gather,
    scatter,
    all_to_all_single,
    all_to_all_parts,
    ring,
    objects,
):
    both(call)
dist.barrier()


def refused(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{arguments} were accepted")


whole, x = dist.group.WORLD, torch.ones(2)
refused(tandem.Unsupported, "int16", dist.all_reduce, torch.ones(2, dtype=torch.int16))
refused(tandem.InvalidArgument, f"output: 2 elements given, allowed are {2 * size}", whole._allgather_base, x, x)
refused(tandem.InvalidArgument, f"input: 2 elements given, allowed are {2 * size}", whole._reduce_scatter_base, x, x)
refused(tandem.InvalidType, "output: float64 given, allowed is float32", whole._allgather_base, x.double(), x)
refused(tandem.InvalidType, "on meta given, allowed are cpu and cuda", whole.broadcast, [x.to("meta")], opts_of(0))
refused(tandem.InvalidArgument, "1 parts given, allowed is one for each", whole.alltoall, [x], [x])


def messages_at_once():
    """Sends come before receives on all processes, with more data than buffers hold."""
    after, before = (rank + 1) % size, (rank - 1) % size
    x, got = torch.full((1 << 22,), float(rank)), torch.empty(1 << 22)
    strided = torch.empty(3, 2).t()
    calls = [
        dist.P2POp(dist.isend, x, after),
        dist.P2POp(dist.isend, torch.full((2, 3), rank + 0.5), after),
        dist.P2POp(dist.irecv, got, before),
        dist.P2POp(dist.irecv, strided, before),
    ]
    works = dist.batch_isend_irecv(calls)
    for work in works:
        assert work.wait() and work.exception() is None
    assert got.eq(before).all() and strided.eq(before + 0.5).all()  # on GPUs the host waits here, and not before
    assert all(work.is_completed() and work.is_success() for work in works)
    sent = dist.isend(x[:5], after)
    received = dist.irecv(got[:5].fill_(-1), before)
    y = torch.ones(1)
    dist.all_reduce(y)  # starts them
    assert y == size and received.is_completed() | received.wait() and got[:5].eq(before).all()
    sent.wait()


def streams():
    """On GPUs, work orders streams, and the host does not wait."""
    x, side = torch.ones(1 << 20), torch.cuda.Stream()
    dist.all_reduce(x.clone())  # meets the other processes, which takes time
    with torch.cuda.stream(side):
        y = x * 2  # later, a first allocation or kernel would wait for the device
    torch.cuda._sleep(4_000_000_000)  # some seconds
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and not work.is_completed()
    with torch.cuda.stream(side):
        work.wait()
        torch.mul(x, 2, out=y)
    assert not work.is_completed() and work.exception() is None
    torch.cuda.synchronize()
    assert work.is_completed() and work.is_success() and y.eq(2 * size).all()
    work.get_future().wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(x)
    x.fill_(3)
    graph.replay()
    assert x.eq(3 * size).all()
    refused(tandem.InvalidArgument, "on cpu given", whole._allgather_base, torch.ones(2 * size, device="cpu"), x[:2])


messages_at_once()
if DEVICE == "cuda":
    streams()
work = dist.all_reduce(x, async_op=True)
assert work.wait() and work.result()[0] is x and work.get_future().wait()[0] is x and x.eq(size).all()
assert work.is_completed() and work.is_success() and work.exception() is None

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions have other names for the same calls
    assert functional.all_reduce(torch.ones(2), "sum", whole).tolist() == [size] * 2
    assert functional.all_gather_tensor(torch.ones(1) * rank, 0, whole).tolist() == list(range(size))
    assert functional.reduce_scatter_tensor(torch.ones(2 * size), "sum", 0, whole).tolist() == [size] * 2

part = dist.new_group(list(range(size - 1)))
if rank < size - 1:
    x = torch.ones(1)
    dist.all_reduce(x, group=part)
    assert x == size - 1


def trained(group):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    parallel = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
    torch.manual_seed(rank)
    for _ in range(20):
        x = torch.randn(4, 8)
        optimizer.zero_grad()
        (parallel(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
    return list(model.parameters())


for mine, theirs in zip(trained(None), trained(other)):
    assert torch.allclose(mine, theirs, atol=1e-5)
assert tt.all_reduce(torch.ones(3)).eq(size).all()  # the operators on a group of this backend
tt.shutdown()
dist.destroy_process_group(other)
if rank == 0:
    dist.all_reduce(torch.ones(1))
    whole.abort()
else:  # the others get its reason, with its number
    try:
        while True:
            dist.all_reduce(torch.ones(1))
    except tandem.Failure as error:
        assert "PE 0: aborted: abort of the process group" in str(error), error
print("all equal")
