"""Operators on GPUs beyond their values: captured graphs, streams, compiled graphs, symmetric memory, wrong devices."""

from __future__ import annotations

import traceback

import numpy
import tandem
import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import check_close, join

rank, size = join()
BF16, F16, FP8 = torch.bfloat16, torch.float16, torch.float8_e4m3fn
ROWS, WIDE, DEEP = 16 * size, 256, 128


def calls():
    """Name, function of tensors, and shapes and types of these, for each operator."""
    x = ((ROWS, DEEP), BF16)
    w = ((WIDE, DEEP), BF16)
    for op in ("sum", "max", "avg"):
        yield f"all_reduce {op}", lambda x, op=op: tt.all_reduce(x, op), [((ROWS, 3), torch.float32)]
    for name in ("reduce_scatter", "all_gather", "all_to_all", "broadcast", "gather", "scatter", "reduce"):
        yield name, getattr(tt, name), [x]
    yield "all_gather_matmul", lambda x, w: tt.all_gather_matmul(x, w.t(), None, "silu"), [x, w]
    yield "all_gather_matmul, two", lambda x, w, v: tt.all_gather_matmul(x, [w.t(), v.t()])[1], [x, w, w]
    yield "all_gather_matmul, kept", lambda x, w: tt.all_gather_matmul(x, w.t(), return_gathered=True)[1], [x, w]
    yield "matmul_reduce_scatter", lambda x, w: tt.matmul_reduce_scatter(x, w.t()), [x, w]
    yield "matmul_all_reduce", lambda x, w: tt.matmul_all_reduce(x, w.t()), [x, w]
    yield "matmul_all_reduce, a row", lambda x, w: tt.matmul_all_reduce(x, w.t()), [((1, DEEP), F16), (w[0], F16)]
    yield "matmul of K x N", lambda x, w: tt.matmul_all_reduce(x, w), [x, ((DEEP, WIDE), BF16)]
    yield "replicated_matmul", lambda x, w: tt.replicated_matmul(x, w.t()), [x, w]
    scale = ((1,), torch.float32)
    for name in ("all_gather_scaled_matmul", "scaled_matmul_reduce_scatter", "scaled_matmul_all_reduce"):
        operator = getattr(tt, name)
        codes = [((ROWS, DEEP), FP8), ((WIDE, DEEP), FP8), scale, scale]
        yield name, lambda x, w, a, b, f=operator: f(x, w.t(), a.abs(), b.abs()), codes
        fast = {"use_fast_accum": True}
        yield f"{name}, fast", lambda x, w, a, b, f=operator: f(x, w.t(), a.abs(), b.abs(), **fast), codes
    yield (
        "norm_all_gather_matmul",
        lambda x, r, w, b: tt.norm_all_gather_matmul(x, b, r, w)[0],
        [x, x, ((DEEP,), BF16), ((DEEP, DEEP), BF16)],
    )
    yield "all_reduce_norm", lambda x, r, w: tt.all_reduce_norm(x, r, w)[0], [x, x, ((DEEP,), BF16)]
    yield "all_reduce_norm, fp8", lambda x, r: tt.all_reduce_norm(x, r, quantisation="row")[2], [x, x]
    for wire in ("fp8", "int8"):
        yield f"all_reduce_quantised {wire}", lambda x, wire=wire: tt.all_reduce_quantised(x, wire), [x]
        yield f"all_gather_quantised {wire}", lambda x, wire=wire: tt.all_gather_quantised(x, wire), [x]
        yield f"reduce_scatter_quantised {wire}", lambda x, wire=wire: tt.reduce_scatter_quantised(x, wire), [x]
    yield "merge_heads", tt.merge_heads, [((3, 2 * size, 16), BF16), ((3, 2 * size), torch.float32)]
    yield "exchange_heads", lambda x: tt.exchange_heads(x), [((ROWS, 2 * size, 8), BF16)]
    yield "experts", experts, [((8, DEEP), BF16), ((8, 2), torch.float32)]
    yield "experts, together", experts_together, [((8, DEEP), BF16), ((8, 2), torch.float32)]


def ids_of(x):
    return (torch.arange(16, device=x.device) % (2 * size)).view(8, 2)


def experts_together(x, weights):
    rows, routing = tt.route_and_dispatch(x, ids_of(x), weights, experts=2 * size)
    return tt.combine(rows * 2, routing)


def experts(x, weights):
    ids = ids_of(x)
    routing = tt.route(ids, weights, experts=2 * size, hidden=DEEP)
    return tt.combine(tt.dispatch(x, routing) * 2, routing)


def values(shapes, seed):
    torch.manual_seed(seed + rank)
    return [torch.randn(*shape).to(dtype) for shape, dtype in shapes]


def captured(function, shapes):
    """Replays of a graph, with values that change, give what eager calls give; so does a call in another stream."""
    inputs = values(shapes, 0)
    function(*inputs)  # makes plans
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = function(*inputs)
    other = torch.cuda.Stream()
    for seed in (1, 2, 3):
        for one, new in zip(inputs, values(shapes, seed)):
            one.copy_(new)
        graph.replay()
        again = out.clone()
        eager = function(*inputs)
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            beside = function(*inputs)
        torch.cuda.current_stream().wait_stream(other)
        assert torch.equal(again.view(torch.uint8), eager.view(torch.uint8)), "a replay differs"
        assert torch.equal(beside.view(torch.uint8), eager.view(torch.uint8)), "another stream differs"
        assert eager.float().isfinite().all()


def without_break(function, shapes):
    """The compiler makes one graph of it, whose code gives the same."""
    inputs = values(shapes, 4)
    torch._dynamo.reset()
    got, wanted = torch.compile(function, fullgraph=True)(*inputs), function(*inputs)
    if wanted.is_floating_point():
        check_close("compiled", got, wanted.double())


def layers_in_graphs():
    """A block of parallel layers with its gradients: compiled, and in graphs that the compiler captures."""
    column = tt.ColumnParallelLinear(DEEP, WIDE * size, activation="gelu", sequence_parallel=True, dtype=BF16)
    row = tt.RowParallelLinear(WIDE * size, DEEP, sequence_parallel=True, dtype=BF16)

    def block(x):
        return x + row(column(F.rms_norm(x, (DEEP,))))

    for mode in (None, "reduce-overhead"):
        torch._dynamo.reset()
        compiled = torch.compile(block, fullgraph=True, mode=mode)
        for seed in range(4):
            (x,) = values([((ROWS, DEEP), BF16)], seed)
            x.requires_grad_()
            results = []
            for function in (block, compiled):
                for one in (x, column.weight, row.weight):
                    one.grad = None
                y = function(x)
                y.float().square().mean().backward()
                results.append([one.detach().double() for one in (y, x.grad, column.weight.grad, row.weight.grad)])
            for wanted, got in zip(*results):
                check_close(mode, got.to(BF16), wanted)


def symmetric_memory():
    """Views, one-sided copies and signals of GPU memory, and arrays of all kinds."""
    world = tt.world_of(device="cuda")
    assert world.device == "gpu" and world.pes == size
    data, words = world.zeros((size, 64), "bfloat16"), world.signals(size)
    after, before = (rank + 1) % size, (rank - 1) % size
    view = data.local.torch()
    assert view.device.type == "cuda" and view.dtype == BF16 and view.data_ptr() == data.local._tandem_memory.address
    mine = torch.full((64,), rank + 1.0, dtype=BF16)
    stream = torch.cuda.current_stream()
    data.put(mine, after, offset=64 * rank, stream=stream)
    words.signal(7, after, index=rank, stream=stream)
    words.wait(7, index=before, stream=stream)
    world.barrier(stream=stream)
    assert view[before].eq(before + 1).all()
    assert torch.equal(torch.from_dlpack(data.local), view)
    world.barrier()
    assert data.get_buffer(after).torch()[rank].eq(rank + 1).all()
    world.barrier()
    local = data.local
    out = world.all_reduce(local, out=local, stream=stream)  # in place, and without copies
    world.synchronize(stream)
    assert out is local and view.eq(torch.arange(1.0, size + 1).view(-1, 1)).all()
    y = world.all_gather(torch.full((3,), float(rank)), stream=torch.cuda.Stream())
    world.synchronize()
    torch.cuda.synchronize()
    assert y.tolist() == [pe for pe in range(size) for _ in range(3)]
    del view, local, out
    data.free()
    words.free()


def registered_memory():
    """A tensor of an expandable segment is reduced in place, and peers reach it."""
    world, after = tt.world_of(device="cuda"), (rank + 1) % size
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    x = torch.full((16 << 20,), rank + 1.0)  # in a segment of its own
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    stream = torch.cuda.current_stream()
    try:
        data = world.register(x)
    except tandem.Unsupported as error:  # on all PEs
        print(f"registration: {error}")
        return
    world.all_reduce(x, out=x, stream=stream)
    world.barrier(stream=stream)
    data.put(torch.full((5,), float(rank)), after, offset=3, stream=stream)
    world.barrier(stream=stream)
    assert x[3:8].eq((rank - 1) % size).all() and x[8:].eq(size * (size + 1) / 2).all()
    data.free()


def refused(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        assert str(error) and isinstance(error, tandem.Error)
    else:
        raise AssertionError((function, arguments))


def wrong_devices():
    """Memory of the host is refused where that of a GPU is needed, and the reverse."""
    world, x = tt.world_of(device="cuda"), torch.ones(4, 16)
    w, on_host = torch.ones(16, 8), torch.ones(16, 8, device="cpu")
    refused(tandem.InvalidArgument, world.all_reduce, numpy.ones(4, "f4"))
    refused(tandem.InvalidArgument, world.all_reduce, on_host)
    refused(tandem.InvalidArgument, world.all_reduce, x, out=on_host)
    refused(tandem.InvalidArgument, tt.all_gather_matmul, x, on_host)
    refused(tandem.InvalidArgument, tt.matmul_all_reduce, x, w, torch.ones(8, device="cpu"))
    refused(tandem.InvalidType, tt.all_reduce, torch.ones(4, device="meta", dtype=torch.bool))
    refused(tandem.InvalidType, tt.all_reduce, torch.ones(4, dtype=torch.bool))
    refused(tandem.InvalidArgument, world.all_reduce, x.t())
    assert tt.all_reduce(x).eq(size).all()


def beside_nccl():
    """NCCL's calls and Tandem's alternate."""
    x = torch.ones(1 << 16)
    for step in range(20):
        y = tt.all_reduce(x * step)
        dist.all_reduce(z := x * step)
        assert torch.equal(y, z)


failed = count = 0


def step(name, function, *arguments):
    global failed, count
    count += 1
    try:
        function(*arguments)
    except Exception as error:  # every step runs, and the program fails in the end
        failed += 1
        print(f"FAILED {name}: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
        frames = reversed(traceback.extract_tb(error.__traceback__)[-5:])
        print("   ", " <- ".join(f"{one.filename.split('/')[-1]}:{one.lineno}" for one in frames))


for name, function, shapes in calls():
    step(f"{name}, captured", captured, function, shapes)
print(f"graphs: {count} steps, {failed} failed", flush=True)
for function in (symmetric_memory, registered_memory, wrong_devices, beside_nccl, layers_in_graphs):
    step(function.__name__, function)
print(f"with layers: {count} steps, {failed} failed", flush=True)
for name, function, shapes in calls():
    step(f"{name}, compiled", without_break, function, shapes)
tt.shutdown()
dist.destroy_process_group()
print(f"{count} steps, {failed} failed" if failed else "all equal")
raise SystemExit(failed > 0)
