"""norm_all_gather_matmul beside float64 references, and the pass that finds it in traced graphs."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from common import check_close, gathered, join, random
from passes import compiled, left_by_inductor
from torch.fx.experimental.proxy_tensor import make_fx

rank, size = join()
group = dist.group.WORLD.group_name
F32, BF16 = torch.float32, torch.bfloat16


def before_gather(shape, dtype, norm, residual, biased, activation, columns, keep_sum):
    """One call of norm_all_gather_matmul beside its definition in float64."""
    hidden = shape[-1]
    x = random(rank, *shape, dtype=dtype)
    r = random(40 + rank, *shape, dtype=dtype) if residual else None
    norm_weight, norm_bias = (random(50 + i, hidden, dtype=dtype) for i in range(2))
    vectors = {"norm_weight": None if norm == "none" else norm_weight, "norm_bias": norm_bias if biased else None}
    weights = [random(60 + i + 7 * rank, hidden, n, dtype=dtype) for i, n in enumerate(columns)]
    biases = [random(80 + i, n, dtype=dtype) for i, n in enumerate(columns)] if biased else None
    made, kept = tt.norm_all_gather_matmul(
        x, weights, r, **vectors, norm=norm, epsilon=1e-5, bias=biases, activation=activation, keep_sum=keep_sum
    )
    assert (kept is None) != keep_sum
    rows = x.double() if r is None else x.double() + r.double()
    if keep_sum:
        check_close("sum", kept, rows)
    rows = rows.to(dtype).double()
    shift = 0 if vectors["norm_bias"] is None else norm_bias.double()
    if norm == "rms":
        rows = F.rms_norm(rows, (hidden,), norm_weight.double(), 1e-5) + shift
    if norm == "layer":
        rows = F.layer_norm(rows, (hidden,), norm_weight.double(), None, 1e-5) + shift
    whole = torch.cat(gathered(rows.to(dtype))).double()
    for i, (one, weight) in enumerate(zip(made, weights, strict=True)):
        wanted = whole @ weight.double() + (0 if biases is None else biases[i].double())
        check_close((norm, shape, i), one, wanted if activation == "none" else getattr(F, activation)(wanted))


for case in (
    ((5, 48), F32, "rms", True, False, "none", (16,), True),
    ((2, 3, 40), BF16, "rms", True, False, "relu", (16, 8), True),
    ((1, 8), torch.float16, "layer", False, True, "none", (8,), False),
    ((70, 64), BF16, "layer", True, True, "silu", (24,), True),
    ((4, 129), F32, "rms", True, False, "none", (7,), True),  # no row of 16 bytes
    ((3, 6), BF16, "none", True, False, "none", (5,), True),
    ((4, 32), F32, "none", True, False, "none", (16,), False),
    ((0, 16), F32, "rms", True, False, "none", (8,), True),
):
    before_gather(*case)


# The pass. Each function takes a partial sum and a residual, which are this PE's rows, then the weight and the bias of
# a norm. Two matrices, as torch.nn.Linear has them, and the bias of the first one follow.


def whole(rows):
    return functional.all_gather_tensor(rows, 0, group)


def rms(s, g):
    return F.rms_norm(s, (s.shape[-1],), g, 1e-5)


def block(x, r, g, h, v, w, b):
    s = x + r
    return F.linear(whole(rms(s, g)), v), s


def deep_stream(x, r, g, h, v, w):
    product, s = block(x, r, g, h, v, w, None)
    for _ in range(2000):
        s = torch.cos(s)
    return product, s


def two_products(x, r, g, h, v, w, b):
    s = r + x
    rows = whole(F.layer_norm(s, (s.shape[-1],), g, h))
    return F.linear(rows, v), F.linear(rows, w), s


def with_bias(x, r, g, h, v, w, b):
    return F.linear(whole(rms(x, g)), v, b)


def by_hand(x, r, g, h, v, w, b):
    s = (x + r).float()
    return tt.all_gather(g * (s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)) @ w.t()


def fused_product(x, r, g, h, v, w, b):
    s = x + r
    made = tt.all_gather_matmul(rms(s, g), [v.t(), w.t()], None, "silu")
    return made[1], made[0] * 2, s


def sum_before(x, r, g, h, v, w, b):
    """The sum is needed by what the norm multiplies with, so the addition stays."""
    s = x + r
    scaled = rms(s, g)
    return F.linear(whole(scaled), v + s.sum()), s


def two_blocks(x, r, g, h, v, w, b):
    y, s = block(x, r, g, h, v, w, b)
    return block(y[: s.shape[0], : s.shape[1]], s, g, h, w, v, b)


def normed_elsewhere(x, r, g, h, v, w, b):
    rows = rms(x + r, g)
    return F.linear(whole(rows), v), rows


def gathered_elsewhere(x, r, g, h, v, w, b):
    rows = whole(rms(x + r, g))
    return F.linear(rows, v), rows


def other_axis(x, r, g, h, v, w, b):
    return F.linear(torch.cat(whole(rms(x, g)).chunk(size), 1), v)


def some_biases(x, r, g, h, v, w, b):
    rows = whole(rms(x, g))
    return F.linear(rows, v, b), F.linear(rows, w)


def product_of_gathered(x, r, g, h, v, w, b):
    rows = whole(rms(x, g))
    return rows.view(-1, rows.shape[-1]).t() @ rows.view(-1, rows.shape[-1])


def check_pass(function, count, shape, dtype):
    hidden = shape[-1]
    vectors = [random(20 + i, hidden, dtype=dtype) for i in range(2)]
    weights = [random(30 + i + 7 * rank, hidden + 8 * i, hidden, dtype=dtype) for i in range(2)]
    rows = [random(10 * i + rank, *shape, dtype=dtype) for i in range(2)]
    arguments = (*rows, *vectors, *weights, random(40, hidden, dtype=dtype))
    with torch.no_grad():
        got, found, text = compiled(function, tt.fuse_norm_all_gather_matmul, arguments)
        wanted = function(*arguments)
    assert found == count == text.count("tandem.norm_all_gather_matmul"), (function, text)
    if count > 0:
        left = ("all_gather_into_tensor", "tandem.all_gather", "aten.mm", "aten.addmm", "rsqrt", "norm.default")
        assert not any(one in text for one in left), text
        assert text.count("aten.add.Tensor") == (2 if function is sum_before else 0), text
    for a, b in zip(*((one,) if isinstance(one, torch.Tensor) else one for one in (got, wanted)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, (function, a.shape, b.shape)
        limit = b.float().abs().max() * (2**-5 if dtype == BF16 else 1e-5)
        assert ((a.float() - b.float()).abs() <= limit).all(), function


if size < 3:  # the number of processes does not change graphs
    for function, count, shape, dtype in (
        (block, 1, (6, 64), BF16),
        (block, 1, (3, 2, 64), F32),
        (two_products, 1, (5, 48), F32),
        (two_products, 1, (2, 3, 64), BF16),
        (with_bias, 1, (4, 32), F32),
        (by_hand, 1, (4, 3, 32), F32),
        (fused_product, 1, (4, 32), F32),
        (fused_product, 1, (4, 2, 32), BF16),
        (sum_before, 1, (4, 32), F32),
        (two_blocks, 2, (6, 32), F32),
        (normed_elsewhere, 0, (4, 32), F32),
        (gathered_elsewhere, 0, (4, 32), F32),
        (other_axis, 0, (4, 3, 32), F32),
        (some_biases, 0, (4, 32), F32),
        (product_of_gathered, 0, (4, 32), F32),
    ):
        check_pass(function, count, shape, dtype)
    # make_fx leaves torch's own norm its addition in place.
    given = [
        random(50 + i + 10 * rank, *one) for i, one in enumerate(((4, 32), (4, 32), (32,), (32,), (8, 32), (16, 32)))
    ]
    traced = make_fx(lambda *given: block(*given, None), tracing_mode="fake")(*given)
    assert tt.fuse_norm_all_gather_matmul(traced) == 1
    assert sum(node.op == "call_function" for node in traced.graph.nodes) == 4, traced.graph
    for got, wanted in zip(traced(*given), block(*given, None)):
        assert (got - wanted).abs().max() < 1e-4
    # In a model of many layers, the residual stream has thousands of operators behind a norm.
    deep = make_fx(deep_stream, tracing_mode="fake")(*given)
    assert tt.fuse_norm_all_gather_matmul(deep) == 1
    rows = [random(10 * i + rank, 6, 64, dtype=BF16) for i in range(2)]
    vectors, weights = [random(20, 64, dtype=BF16)] * 2, [random(30, 64, 64, dtype=BF16)] * 2
    with torch.no_grad():
        called = left_by_inductor(two_products, (*rows, *vectors, *weights, vectors[0]))
    assert "tandem.norm_all_gather_matmul.default" in called, called
    assert not any(word in one for one in called for word in ("mm.default", "all_gather_into", "rsqrt", "add")), called
tt.shutdown()
print("all equal")
