"""Dispatch and combine beside references in float64: values, gradients, layouts, fp8, reused routings."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import DEVICE, check_close, gathered, join

rank, size = join()
HERE = 2  # experts of a PE
EXPERTS, TOKENS, TOP_K, HIDDEN = HERE * size, 5, 3, 40
BF16, F16, FP8 = torch.bfloat16, torch.float16, torch.float8_e4m3fn


def random(seed, *shape, dtype=torch.float32):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def choices(seed, tokens, top_k=TOP_K, dtype=torch.int64):
    """Experts of each token: some chosen twice, some tokens without any."""
    torch.manual_seed(seed)
    ids = torch.randint(-1, EXPERTS, (tokens, top_k), dtype=dtype)
    if tokens > 1:
        ids[0], ids[1] = -1, ids[1, 0]
    return ids


def everybody(value, tokens):
    """A tensor of all PEs, whose first axes may differ: a list."""
    counts = gathered(torch.tensor([tokens]))
    most = int(max(counts))
    padded = torch.zeros(most, *value.shape[1:], dtype=value.dtype)
    padded[:tokens] = value
    return [one.view(value.dtype)[: int(n)] for one, n in zip(gathered(padded.view(torch.uint8)), counts)]


def rows_here(ids):
    """For each expert of this PE its rows, as pairs of PE and token."""
    order = [(rank + i) % size for i in range(size)]
    wanted = range(rank * HERE, (rank + 1) * HERE)
    return [
        [(pe, t) for pe in order for t in range(len(ids[pe])) for k in ids[pe][t].tolist() if k == e] for e in wanted
    ]


def check_rows(rows, routing, xs, ids, layout, align):
    """Rows of the experts here, bit for bit."""
    expected, at = rows_here(ids), 0
    assert routing.counts.tolist() == [len(one) for one in expected]
    assert routing.tokens.tolist() == [len(one) for one in ids]
    for e, pairs in enumerate(expected):
        at = e * routing.problem.most_rows if layout == "by_expert" else at
        assert routing.starts[e] == at, (layout, routing.starts, at)
        slots = routing.slots[at : at + len(pairs)].tolist()
        assert slots == [pe * routing.problem.max_tokens + t for pe, t in pairs], (layout, slots)
        for i, (pe, t) in enumerate(pairs):
            row = rows[slots[i] if layout == "in_place" else at + i]
            assert torch.equal(row.view(torch.uint8), xs[pe][t].view(torch.uint8)), (layout, e, i)
        at += -(-len(pairs) // align) * align


def experts_of(matrices, rows, routing, layout):
    """Multiplies the rows of each expert by its matrix."""
    if layout == "in_place":
        rows = rows[routing.slots.clamp(0, len(rows) - 1).long()]  # rows behind the last one are not used
    y = torch.zeros(routing.arrays.sizes.rows, HIDDEN, dtype=rows.dtype)
    for e in range(HERE):
        begin, count = int(routing.starts[e]), int(routing.counts[e])
        index = torch.arange(begin, begin + count)
        y = y.index_copy(0, index, rows[index] @ matrices[e])
    return y


def reference(x, weights, ids, matrices, add):
    """The layer of one PE in float64, with the experts of all PEs."""
    out = add.clone()
    for t in range(len(x)):
        for k, expert in enumerate(ids[t].tolist()):
            if expert >= 0:
                out = out.index_add(0, torch.tensor([t]), (weights[t, k] * (x[t] @ matrices[expert]))[None])
    return out


def layer(dtype, layout, align, tokens, id_type=torch.int64):
    """Values and gradients of x, weights, matrices and the added tensor."""
    ids = choices(10 + rank, tokens, dtype=id_type)
    x = random(rank, tokens, HIDDEN, dtype=dtype).requires_grad_()
    add = random(30 + rank, tokens, HIDDEN, dtype=dtype).requires_grad_()
    weights = random(20 + rank, tokens, TOP_K).requires_grad_()
    own = (random(40 + rank, HERE, HIDDEN, HIDDEN) * HIDDEN**-0.5).to(dtype).requires_grad_()
    most = size * TOKENS * TOP_K if layout == "by_expert" else 0
    options = {"experts": EXPERTS, "hidden": HIDDEN, "max_tokens": TOKENS, "dtype": dtype}
    problem = {"layout": layout, "align": align, "most_rows": most}
    routing = tt.route(ids, weights, **problem, **options)
    all_ids = everybody(ids, tokens)
    for together in sorted((False, True), reverse=dtype == BF16):  # the last one has the gradients
        rows = tt.dispatch(x, routing)
        if together:
            rows, routing = tt.route_and_dispatch(x, ids, weights, experts=EXPERTS, max_tokens=TOKENS, **problem)
        check_rows(rows.detach(), routing, everybody(x.detach(), tokens), all_ids, layout, align)
        out = tt.combine(experts_of(own, rows, routing, layout), routing, add)
    matrices = torch.cat(gathered(own)).double().requires_grad_()
    leaves = [[one.double().requires_grad_() for one in everybody(a.detach(), tokens)] for a in (x, weights, add)]
    wanted = [reference(leaves[0][pe], leaves[1][pe], all_ids[pe], matrices, leaves[2][pe]) for pe in range(size)]
    check_close((layout, "out"), out.detach(), wanted[rank].detach())
    loss = [random(50 + pe, *one.shape, dtype=torch.float64) for pe, one in enumerate(wanted)]
    (out * loss[rank].to(dtype)).sum().backward()
    sum((a * b).sum() for a, b in zip(wanted, loss)).backward()
    for name, got, want in (
        ("x", x.grad, leaves[0][rank].grad),
        ("add", add.grad, leaves[2][rank].grad),
        ("matrices", own.grad, matrices.grad[rank * HERE : (rank + 1) * HERE]),
    ):
        if got.numel() > 0:
            check_close((layout, name), got, want)
    if tokens > 0:
        error = (weights.grad.double() - leaves[1][rank].grad).abs().max()
        assert error <= 3e-2 * (1 + leaves[1][rank].grad.abs().max()), (layout, "weights", error)


for dtype, layout, align, tokens in (
    (BF16, "sorted", 1, TOKENS),
    (F16, "sorted", 8, TOKENS),
    (BF16, "by_expert", 1, TOKENS),
    (F16, "in_place", 1, TOKENS),
    (BF16, "sorted", 4, rank if size > 1 else 1),  # numbers of tokens differ, and PE 0 has none
):
    layer(dtype, layout, align, tokens)
layer(BF16, "sorted", 1, TOKENS, torch.int32)


def part_of(matrices, axis, tp):
    """This PE's part of matrices of all experts, whose columns of the first product lie along an axis."""
    return matrices.chunk(size // tp)[rank // tp].chunk(tp, axis)[rank % tp]


def whole(experts, tokens, top_k, hidden, intermediate, shared, tp=1, **options):
    """ParallelExperts beside all experts in float64: values and gradients."""
    torch.manual_seed(3)
    gate_up = (torch.randn(experts, 2 * intermediate, hidden) * hidden**-0.5).to(BF16)
    down = (torch.randn(experts, hidden, intermediate) * intermediate**-0.5).to(BF16)
    layer = tt.ParallelExperts(hidden, intermediate, experts, max_tokens=TOKENS + 2, tp_size=tp, **options)
    layer.load_state_dict({"gate_up_proj": gate_up, "down_proj": down})
    state = layer.state_dict()
    assert torch.equal(state["gate_up_proj"], torch.cat([part_of(one, 1, tp) for one in gate_up.chunk(2, 1)], 1))
    assert torch.equal(state["down_proj"], part_of(down, 2, tp))
    torch.nn.init.zeros_(layer.gate_up_proj)
    layer.load_state_dict(state)  # a part is as good as the whole
    xs = [random(80 + pe, tokens + pe % 2, hidden, dtype=BF16) for pe in range(size)]
    scores = [random(90 + pe, len(one), experts).softmax(-1).topk(top_k) for pe, one in enumerate(xs)]
    *every, wide, narrow = (one.double().requires_grad_() for one in (*xs, gate_up, down))
    kept = [one.values.double().requires_grad_() for one in scores]
    loss = 0
    for pe, x in enumerate(every):
        gate, up = torch.einsum("th,eih->tei", x, wide).chunk(2, -1)
        y = torch.einsum("tei,ehi->teh", F.silu(gate) * up, narrow)
        chosen = y.gather(1, scores[pe].indices.unsqueeze(-1).expand(-1, -1, hidden))
        out = (chosen * kept[pe].unsqueeze(-1)).sum(1) + (x if shared else 0)
        loss = loss + (out * random(100 + pe, *out.shape, dtype=torch.float64)).sum()
        if pe == rank:
            wanted = out
    loss.backward()
    x = xs[rank].requires_grad_()
    weights = scores[rank].values.clone().requires_grad_()
    out = layer(x, scores[rank].indices, weights, x if shared else None)
    check_close("experts", out.detach(), wanted.detach())
    with torch.no_grad():
        served = layer(x, scores[rank].indices, weights, x if shared else None)
    check_close("no gradients", served, wanted.detach())
    if not layer.fused or layer.recompute:  # the same operations, where undefined rows make no difference
        assert torch.equal(out, served)
    (out * random(100 + rank, *out.shape, dtype=torch.float64).to(BF16)).sum().backward()
    check_close("x", x.grad, every[rank].grad)
    gates, ups = (part_of(one, 1, tp) for one in wide.grad.chunk(2, 1))
    check_close("gate_up", layer.gate_up_proj.grad, tt.interleave_gates(gates, ups))
    check_close("down", layer.down_proj.grad, part_of(narrow.grad, 2, tp))
    assert (weights.grad - kept[rank].grad).abs().max() <= 3e-2 * kept[rank].grad.abs().max()


for options in ({}, {"recompute": True}, {"fused": False}):
    whole(2 * size, 5, 2, 32, 48, False, **options)  # few experts, as Mixtral
    whole(8 * size, 6, 8, 48, 16, True, **options)  # many, and a shared one, as DeepSeek-V3
    whole(3, 5, 2, 32, 16 * size, True, tp=size, **options)  # tensor-parallel
    if size % 2 == 0:
        whole(size, 5, 2, 32, 48, False, tp=2, **options)

# The layout of gates and ups.
for dtype in (torch.float32, BF16, FP8):
    gates, ups = (random(i, 2, 24, 5, dtype=dtype) for i in (200, 201))
    mixed = tt.interleave_gates(gates, ups)
    assert mixed.shape == (2, 48, 5) and mixed.dtype == dtype
    for i in range(3):
        for j, one in enumerate((gates, ups)):
            rows = mixed[:, 16 * i + 8 * j : 16 * i + 8 * j + 8].float()
            assert torch.equal(rows, one[:, 8 * i : 8 * i + 8].float())
    assert all(torch.equal(a.float(), b.float()) for a, b in zip(tt.separate_gates(mixed), (gates, ups)))

ACTIVATIONS = {
    "none": lambda sums: sums,
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "swiglu": lambda sums: F.silu(sums[0]) * sums[1],
    "geglu": lambda sums: F.gelu(sums[0]) * sums[1],
}


def products(activation, dtype, form):
    """dispatch_gemm and gemm_combine with gradients beside float64. Returns the gradients."""
    hidden, intermediate, is_gated = 40, 24, activation in ("swiglu", "geglu")
    ids = choices(rank, TOKENS)
    every = [random(210 + pe, TOKENS, hidden, dtype=dtype) for pe in range(size)]
    scales = [random(220 + pe, TOKENS, TOP_K).abs() for pe in range(size)]
    first = random(230, EXPERTS, 2 * intermediate if is_gated else intermediate, hidden) * hidden**-0.5
    second = random(240, EXPERTS, hidden, intermediate) * intermediate**-0.5
    here = slice(rank * HERE, (rank + 1) * HERE)
    x, w, down = (one.to(dtype).clone().requires_grad_() for one in (every[rank], first[here], second[here]))
    weights = scales[rank].clone().requires_grad_()
    routing = tt.route(ids, weights, experts=EXPERTS, hidden=hidden, align=128, dtype=dtype)
    h = tt.dispatch_gemm(x, routing, w, activation=activation, form=form)
    out = tt.gemm_combine(h, routing, down, form=form)
    factors = [random(250 + pe, TOKENS, hidden, dtype=dtype) for pe in range(size)]
    (out * factors[rank]).sum().backward()
    *leaves, wide, narrow = (one.to(dtype).double().requires_grad_() for one in (*every, first, second))
    kept = [one.double().requires_grad_() for one in scales]
    loss, all_ids = 0, gathered(ids)
    for pe in range(size):
        sums = torch.einsum("th,eih->tei", leaves[pe], wide)
        sums = [one.flatten(2) for one in sums.unflatten(2, (-1, 2, 8)).unbind(3)] if is_gated else sums
        y = torch.einsum("tei,ehi->teh", ACTIVATIONS[activation](sums), narrow)
        chosen = y.gather(1, all_ids[pe].clamp(min=0).unsqueeze(-1).expand(-1, -1, hidden))
        wanted = (chosen * torch.where(all_ids[pe] < 0, 0.0, kept[pe]).unsqueeze(-1)).sum(1)
        loss = loss + (wanted * factors[pe].double()).sum()
        if pe == rank:
            check_close((activation, "out"), out.detach(), wanted.detach())
    loss.backward()
    check_close((activation, "x"), x.grad, leaves[rank].grad)
    check_close((activation, "w"), w.grad, wide.grad[here])
    check_close((activation, "down"), down.grad, narrow.grad[here])
    error = (weights.grad - kept[rank].grad).abs().max()
    assert error <= 3e-2 * kept[rank].grad.abs().max(), (activation, float(error))
    return [one.grad for one in (x, w, down, weights)]


for activation in ACTIVATIONS:
    for dtype in (BF16, F16):
        both = [products(activation, dtype, form) for form in ("sequential", "overlapped")]
        assert all(torch.equal(a, b) for a, b in zip(*both)), activation

# Both forms of the products have the same bits, also with gated activations.
hidden, intermediate = 40, 32
x, ids = random(rank, TOKENS, hidden, dtype=BF16), choices(rank, TOKENS)
in_type = routing = tt.route(ids, experts=EXPERTS, hidden=hidden, align=128)
gates, ups = (random(70 + i + rank, HERE, intermediate, hidden, dtype=BF16) for i in (0, 50))
down = random(170 + rank, HERE, hidden, intermediate, dtype=BF16)
mixed = tt.interleave_gates(gates, ups)
with torch.no_grad():
    results = []
    for form in ("sequential", "overlapped"):
        h = tt.dispatch_gemm(x, routing, mixed, activation="swiglu", form=form)
        results.append(tt.gemm_combine(h, routing, down, form=form))
        plans = tt._groups.world_for(routing.problem.group, DEVICE).plans
        first, second = (plans[routing.problem, intermediate, one, form, form] for one in ("swiglu", None))
        assert first is second  # which has memory for rows under way
    assert torch.equal(*results)
    gate, up = tt.dispatch_gemm(x, routing, torch.cat((gates, ups), 1)).chunk(2, -1)
    plain = tt.gemm_combine(F.silu(gate) * up, routing, down)
    check_close("swiglu", results[0], plain)
try:
    tt.dispatch_gemm(x, tt.route(ids, experts=EXPERTS, hidden=hidden), mixed)
    assert False
except tt._experts.errors.InvalidArgument as error:
    assert "align: 1 given to products of experts, allowed is 128" in str(error), error

# fp8 on the way: quantised here, or given.
x, ids = random(rank, TOKENS, 208, dtype=BF16), choices(rank, TOKENS)
options = {"experts": EXPERTS, "hidden": 208, "layout": "by_expert", "most_rows": size * TOKENS * TOP_K}
routing = tt.route(ids, wire="quantised", **options)
rows, scales = tt.dispatch(x, routing)
padded = F.pad(x.float(), (0, 48)).view(TOKENS, 2, 128)
wanted_scales = padded.abs().amax(-1) / 448
codes = (padded * (1 / wanted_scales.unsqueeze(-1))).view(TOKENS, 256)[:, :208].to(FP8)
given = tt.route(ids, wire="given", **options)
rows_given, scales_given = tt.dispatch(codes, given, wanted_scales)
all_codes, all_ids = everybody(codes, TOKENS), everybody(ids, TOKENS)
check_rows(rows_given, given, all_codes, all_ids, "by_expert", 1)
for e in range(HERE):
    used = slice(int(given.starts[e]), int(given.starts[e] + given.counts[e]))
    back = rows[used].float() * scales[used].repeat_interleave(128, 1)[:, :208]
    want = rows_given[used].float() * scales_given[used].repeat_interleave(128, 1)[:, :208]
    assert ((back - want).abs() <= want.abs() / 8 + 1e-3).all()
    assert torch.allclose(scales[used], scales_given[used], rtol=1e-2)
options.pop("hidden")
for wire, x_given, x_scales in (("quantised", x, None), ("given", codes, wanted_scales)):
    both, together = tt.route_and_dispatch(x_given, ids, wire=wire, x_scales=x_scales, **options)
    assert torch.equal(together.counts, given.counts) and torch.equal(together.starts, given.starts)
    apart = (rows, scales) if wire == "quantised" else (rows_given, scales_given)
    for e in range(HERE):
        used = slice(int(given.starts[e]), int(given.starts[e] + given.counts[e]))
        assert all(torch.equal(a[used].view(torch.uint8), b[used].view(torch.uint8)) for a, b in zip(both, apart)), wire
options["hidden"] = 208

# Products in fp8, whose results are those of the same values in float64.


def in_blocks(w, gated):
    """Codes of matrices, their scales of 128x128, and the values that both stand for."""
    kinds = w.unflatten(1, (-1, 2, 8)).movedim(2, 1).flatten(2, 3) if gated else w.unsqueeze(1)  # gates, ups
    rows, k = kinds.shape[2:]
    padded = F.pad(kinds.float(), (0, -k % 128, 0, -rows % 128)).unflatten(3, (-1, 128)).unflatten(2, (-1, 128))
    scales = padded.abs().amax((3, 5)) / 448  # expert, kind, block of rows, block of k
    codes = (padded / scales[:, :, :, None, :, None]).to(FP8)
    back = codes.double() * scales[:, :, :, None, :, None].double()

    def laid_out(x):
        x = x.flatten(4, 5).flatten(2, 3)[:, :, :rows, :k]
        return x.unflatten(2, (-1, 8)).movedim(1, 2).flatten(1, 3) if gated else x[:, 0]

    return laid_out(codes.float()).to(FP8), scales.transpose(1, 2).flatten(1, 2).contiguous(), laid_out(back)


def layer_in_fp8(wire, activation, intermediate, hidden=208):
    gated = activation == "swiglu"
    x, ids = random(rank, TOKENS, hidden, dtype=BF16), choices(rank, TOKENS)
    add = random(130 + rank, TOKENS, hidden, dtype=BF16)
    padded = F.pad(x.float(), (0, -hidden % 128)).unflatten(1, (-1, 128))
    x_scales = padded.abs().amax(-1) / 448
    codes = (padded / x_scales.unsqueeze(-1)).flatten(1)[:, :hidden].to(FP8)
    values = codes.double() * x_scales.double().repeat_interleave(128, 1)[:, :hidden]
    columns = intermediate * (2 if gated else 1)
    first, first_scales, wide = in_blocks(random(140 + rank, HERE, columns, hidden) * hidden**-0.5, gated)
    second, second_scales, narrow = in_blocks(random(150 + rank, HERE, hidden, intermediate), False)
    routing = tt.route(ids, experts=EXPERTS, hidden=hidden, align=128, wire=wire)
    given = {"x_scales": x_scales} if wire == "given" else {}
    with torch.no_grad():
        h, scales = tt.dispatch_gemm(
            codes if wire == "given" else x, routing, first, w_scales=first_scales, activation=activation, **given
        )
        assert h.dtype == FP8 and h.shape == (routing.arrays.sizes.rows, intermediate)
        assert scales.shape == (len(h), -(-intermediate // 128))
        outs = [
            tt.gemm_combine(h, routing, second, add, a_scales=scales, w_scales=second_scales, form=form)
            for form in ("rule", "overlapped")
        ]
    assert torch.equal(*outs)
    wanted = add.double()
    every, narrows = torch.cat(gathered(wide)), torch.cat(gathered(narrow))
    for t in range(TOKENS):
        for expert in ids[t].tolist():
            if expert >= 0:
                between = every[expert] @ values[t]
                if gated:
                    gates, ups = between.unflatten(0, (-1, 2, 8)).unbind(1)
                    between = (F.silu(gates) * ups).flatten()
                wanted[t] += narrows[expert] @ between
    error = (outs[0].double() - wanted).abs().max() / wanted.abs().max()
    assert error <= 0.1, (wire, activation, float(error))  # fp8 has 3 bits behind the first one
    return x, codes, routing, first, first_scales, h, scales, second, second_scales


if DEVICE == "cpu":
    layer_in_fp8("given", "none", 130)
layer_in_fp8("given", "swiglu", 144)
x, codes, in_fp8, first, first_scales, h, h_scales, second, second_scales = layer_in_fp8("quantised", "swiglu", 144)


def refused(text, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except tt._experts.errors.Error as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


there = {"w_scales": first_scales, "activation": "swiglu"}
refused("w_scales: None given, allowed is a tensor", tt.dispatch_gemm, x, in_fp8, first, activation="swiglu")
refused("x_scales: a tensor given, allowed with wire", tt.dispatch_gemm, x, in_fp8, first, x_scales=h_scales, **there)
refused("w: bfloat16 given, allowed are float8", tt.dispatch_gemm, x, in_fp8, first.to(BF16), **there)
refused("x: float8_e4m3fn given", tt.dispatch_gemm, codes, in_fp8, first, **there)
refused("w_scales: float64 given", tt.dispatch_gemm, x, in_fp8, first, w_scales=first_scales.double())
beside = {"form": "overlapped", **there}
refused("form: 'overlapped' given to dispatch_gemm in fp8", tt.dispatch_gemm, x, in_fp8, first, **beside)
refused("w_scales: shape", tt.dispatch_gemm, x, in_fp8, first, w_scales=first_scales[:, :1], activation="swiglu")
back = {"a_scales": h_scales, "w_scales": second_scales}
refused("a_scales: None given", tt.gemm_combine, h, in_fp8, second, w_scales=second_scales)
refused("a_scales: shape", tt.gemm_combine, h, in_fp8, second, a_scales=h_scales[:1], w_scales=second_scales)
h_in_type = torch.zeros(in_type.arrays.sizes.rows, 32, dtype=BF16)
refused("w_scales: a tensor given, allowed with", tt.gemm_combine, h_in_type, in_type, down, w_scales=second_scales)
refused("a: bfloat16 given", tt.gemm_combine, h.to(BF16), in_fp8, second, **back)
needs = torch.ones_like(in_fp8.weights).requires_grad_()
out = tt.gemm_combine(h, tt.Routing(in_fp8.memory, needs, in_fp8.problem), second, **back)
refused("wire: 'quantised' given, allowed with gradients", out.sum().backward)
in_f16 = tt.route(
    choices(rank, TOKENS), experts=EXPERTS, hidden=208, max_tokens=TOKENS, align=128, wire="quantised", dtype=F16
)
refused("dtype: torch.float16 given to products in fp8", tt.dispatch_gemm, x.to(F16), in_f16, first, **there)

# The same bits in every run; a program without weights; a refused id.
y = random(5, routing.arrays.sizes.rows, 208, dtype=BF16)
first, second = tt.combine(y, routing), tt.combine(y, routing)
assert torch.equal(first, second)
try:
    tt.route(torch.full((TOKENS, TOP_K), EXPERTS if rank == 0 else 0), **options)
    if DEVICE == "cuda":  # where calls return before they end
        tt.world_of(device=DEVICE).synchronize(torch.cuda.current_stream())
    assert rank != 0
except tt._experts.errors.InvalidArgument as error:
    assert "ids: PE 0, token 0, k 0" in str(error), error
dist.barrier()

# Heads around attention.
for dtype, heads, all_heads, base_two in (
    (torch.float32, 2 * size + 1, False, False),
    (BF16, 4, True, True),
    (F16, size, False, True),
):
    partial, lse = random(rank, 3, heads, 16, dtype=dtype), random(60 + rank, 3, heads)
    lse[0, 0] = -torch.inf
    if rank == 0:
        lse[1] = torch.nan
    base = 2.0 if base_two else torch.e
    weights = [torch.where(one.isfinite(), base ** one.double(), 0.0).unsqueeze(-1) for one in gathered(lse)]
    total = sum(weights)
    parts = [(w * p.double()) for w, p in zip(weights, gathered(partial))]
    wanted = torch.where(total > 0, sum(parts) / total, 0.0)
    step = -(-heads // size)
    wanted = wanted if all_heads else wanted[:, rank * step : (rank + 1) * step]
    check_close("merge_heads", tt.merge_heads(partial, lse, all_heads=all_heads, base_two=base_two), wanted)
for rows in (4, 0, 33):  # plans grow
    tensors = [random(70 + rank + i, rows, size * h, 8).requires_grad_() for i, h in enumerate((2, 1, 1))]
    out = tt.exchange_heads(*tensors)
    for x, got in zip(tensors, out):
        assert torch.equal(got, torch.cat([one.chunk(size, 1)[rank] for one in gathered(x)]))
    back = tt.exchange_heads(*out, to_rows=True)
    assert all(torch.equal(a, b) for a, b in zip(tensors, back))
    sum((one * (rank + 1)).sum() for one in out).backward()  # the gradient of a head is its PE's factor
    for x in tensors:
        wanted = torch.arange(1.0, size + 1).repeat_interleave(x.shape[1] // size).view(1, -1, 1).expand(x.shape)
        assert torch.equal(x.grad, wanted)

# Quantised collectives: within the bound of docs/reference/quantised.md.
for wire, bound in (("fp8", 1 / 28), ("int8", 1 / 254)):
    x = random(rank, 4 * size, 128).requires_grad_()
    every = gathered(x)
    error = 1.01 * bound * sum(one.abs().max() for one in every)
    got = tt.all_reduce_quantised(x, wire)
    assert ((got - sum(every)).abs() <= error + 1.01 * bound * got.abs().max()).all()
    assert not torch.equal(got, sum(every))
    assert ((tt.reduce_scatter_quantised(x, wire) - sum(every).chunk(size)[rank]).abs() <= error).all()
    gathers = tt.all_gather_quantised(x, wire)
    assert ((gathers - torch.cat(every)).abs() <= error).all()
    (gathers * (rank + 1)).sum().backward()
    assert x.grad.eq(size * (size + 1) / 2).all()
tt.shutdown()
print("all equal")
