"""all_reduce_norm beside float64 references, and the pass that finds it in traced graphs."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from common import check_close, gathered, join, random
from passes import compiled, left_by_inductor

rank, size = join()
group = dist.group.WORLD.group_name
F32, BF16, FP8 = torch.float32, torch.bfloat16, torch.float8_e4m3fn


def dequantised(out, scales, quantisation, scale):
    if quantisation == "static":
        return out.float() * scale
    if quantisation == "row":
        return out.float() * scales
    return out.float() * scales.repeat_interleave(128, -1)[..., : out.shape[-1]]


def values(shape, dtype, norm, quantisation, residual, biased, weighted, keep_sum):
    """One call beside its definition in float64."""
    hidden, scale = shape[-1], 0.5 if quantisation == "static" else 1.0
    x = random(rank, *shape, dtype=dtype)
    r = random(10, *shape, dtype=dtype) if residual else None
    w, b, nb = (random(11 + i, hidden, dtype=dtype) for i in range(3))
    weight, bias = w if weighted and norm != "none" else None, b if biased else None
    norm_bias = nb if biased and norm != "none" else None
    out, kept, scales = tt.all_reduce_norm(
        x,
        r,
        weight,
        bias=bias,
        norm_bias=norm_bias,
        norm=norm,
        epsilon=1e-5,
        quantisation=quantisation,
        scale=scale,
        keep_sum=keep_sum,
    )
    wanted = sum(one.double() for one in gathered(x))
    wanted = wanted + (0 if bias is None else bias.double()) + (0 if r is None else r.double())
    assert (kept is None) != keep_sum
    if keep_sum:
        check_close("sum", kept, wanted)
        wanted = kept.double()
    ones = torch.ones(hidden, dtype=torch.float64)
    vectors = [ones if weight is None else weight.double(), 0 * ones if norm_bias is None else norm_bias.double()]
    if norm == "rms":
        wanted = F.rms_norm(wanted, (hidden,), vectors[0], 1e-5) + vectors[1]
    if norm == "layer":
        wanted = F.layer_norm(wanted, (hidden,), *vectors, 1e-5)
    assert (scales is None) == (quantisation in ("none", "static"))
    if quantisation == "none":
        check_close((norm, shape), out, wanted)
    elif wanted.numel() > 0:
        assert out.dtype == FP8
        got = dequantised(out, scales, quantisation, scale).double()
        limit = wanted.abs() / 16 + (wanted.abs().max() + 1) * 2**-9 + (0 if dtype == torch.float32 else 0.05)
        assert ((got - wanted).abs() <= limit).all(), (norm, quantisation, (got - wanted).abs().max())


for case in (
    ((5, 48), torch.float32, "rms", "none", True, False, True, True),
    ((2, 3, 40), torch.bfloat16, "rms", "none", True, True, True, False),
    ((1, 8), torch.float16, "layer", "none", False, True, True, True),
    ((7, 129), torch.float32, "layer", "row", True, True, False, True),
    ((4, 384), torch.bfloat16, "rms", "128", True, False, True, True),
    ((3, 200), torch.float32, "rms", "128", False, False, False, False),
    ((6, 16), torch.float32, "none", "static", True, True, False, True),
    ((0, 16), torch.float32, "rms", "row", True, False, True, True),
    ((16,), torch.float32, "rms", "none", True, False, True, True),
    ((300, 1024), torch.float32, "rms", "row", True, False, True, True),  # two shots, with copies of the buffers
):
    values(*case)


# The pass. Each function takes a partial sum, a residual, and two vectors.


def reduced(x):
    return functional.all_reduce(x, "sum", group)


def rms(x, r, w, _):
    s = reduced(x) + r
    return F.rms_norm(s, (s.shape[-1],), w, 1e-5), s


def rms_by_hand(x, r, w, b):
    s = r + (tt.all_reduce(x) + b)
    s32 = s.float()
    return w * (s32 * torch.rsqrt((s32 * s32).mean(-1, keepdim=True) + 1e-5)).to(s.dtype), s


def norm_alone(x, r, w, _):
    return F.rms_norm(reduced(x), (x.shape[-1],), None, 1e-6) * 2


def layer(x, r, w, b):
    s = reduced(x) + r
    return F.layer_norm(s, (s.shape[-1],), w, b), s


def in_place(x, r, w, b):
    partial = x * 2
    dist.all_reduce(partial)
    s = partial + r
    return F.rms_norm(s, (s.shape[-1],), w, 1e-5), s


def by_rows(x, r, w, _):
    y, s = rms(x, r, w, _)
    scale = (y.abs().amax(-1, keepdim=True).float() / 448).clamp(min=1e-12)
    return (y.float() / scale).clamp(-448, 448).to(FP8), scale, s


def by_groups(x, r, w, _):
    y, s = rms(x, r, w, _)
    parts = y.float().view(*y.shape[:-1], -1, 128)
    scale = parts.abs().amax(-1).clamp(1e-10) / 448
    return (parts / scale.unsqueeze(-1)).to(FP8).view(y.shape), scale, s


def static(x, r, w, _):
    return (rms(x, r, w, _)[0].float() / 0.5).clamp(-448, 448).to(FP8)


def two_layers(x, r, w, b):
    y, s = rms(x, r, w, b)
    return rms(y * 0.5, s, w, b)


def used_elsewhere(x, r, w, _):
    whole = reduced(x)
    return F.rms_norm(whole + r, (x.shape[-1],), w, 1e-5), whole


def norm_elsewhere(x, r, w, _):
    y = rms(x, r, w, _)[0]
    return (y.float() / 0.5).to(FP8), y


def maximum(x, r, w, _):
    s = functional.all_reduce(x, "max", group) + r
    return F.rms_norm(s, (s.shape[-1],), w, 1e-5)


def wrong_axis(x, r, w, _):
    s = reduced(x) + r
    return s * torch.rsqrt((s * s).mean(0, keepdim=True) + 1e-5) * w


def wide_residual(x, r, w, _):
    s = reduced(x) + r.sum(0, keepdim=True)
    return F.rms_norm(s, (s.shape[-1],), w, 1e-5)


def narrow_clamp(x, r, w, _):
    return (rms(x, r, w, _)[0].float() / 0.5).clamp(-240, 240).to(FP8)


def check_pass(function, count, quantisation, dtype):
    shape = (6, 256)
    vectors = [random(20 + i, *one, dtype=dtype) for i, one in enumerate((shape, shape[1:], shape[1:]))]
    arguments = random(rank, *shape, dtype=dtype), *vectors
    got, found, text = compiled(function, tt.fuse_all_reduce_norm, arguments)
    assert found == count == text.count("tandem.all_reduce_norm"), (function, text)
    left = text.count("_c10d_functional.all_reduce") + text.count("tandem.all_reduce.default")
    assert left == (count == 0), text
    if count > 0:
        assert f", {quantisation}, " in text and "rsqrt" not in text and "amax" not in text, text
    wanted = function(*arguments)
    for a, b in zip(*((one,) if isinstance(one, torch.Tensor) else one for one in (got, wanted)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, (function, a.shape, b.shape)
        error, size = (a.float() - b.float()).abs(), b.float().abs()
        limit = (1 + size) * (2**-5 if dtype == BF16 else 1e-5)
        if a.dtype == FP8:  # a step of fp8, where the largest number of a row is 448
            limit = size / 8 + (448 / 2**6 if dtype == BF16 else 2**-3)
        assert (error <= limit).all(), (function, error.max())


if size < 3:  # the number of processes does not change graphs
    for function, count, quantisation, dtype in (
        (rms, 1, "none", BF16),
        (rms_by_hand, 1, "none", BF16),
        (norm_alone, 1, "none", F32),
        (layer, 1, "none", BF16),
        (in_place, 1, "none", F32),
        (by_rows, 1, "row", BF16),
        (by_rows, 1, "row", F32),
        (by_groups, 1, "128", BF16),
        (static, 1, "static", BF16),
        (two_layers, 2, "none", F32),
        (used_elsewhere, 0, "", F32),
        (norm_elsewhere, 1, "none", BF16),
        (maximum, 0, "", F32),
        (wrong_axis, 0, "", F32),
        (wide_residual, 0, "", F32),
        (narrow_clamp, 1, "none", F32),
    ):
        check_pass(function, count, quantisation, dtype)
    # Inductor has decompositions of its own. Its pass leaves nothing to compile here.
    for function in (layer, by_rows):
        vectors = [random(20 + i, *one, dtype=BF16) for i, one in enumerate(((6, 256), (256,), (256,)))]
        called = left_by_inductor(function, (random(rank, 6, 256, dtype=BF16), *vectors))
        assert called == {"tandem.all_reduce_norm.default", "<built-in function getitem>"}, called
tt.shutdown()
print("all equal")
