"""Products without Python between dispatcher and C API, beside those of the kernels in Python."""

from __future__ import annotations

import tandem
import tandem.torch as tt
import torch
from common import DEVICE, join
from tandem.torch import _native

rank, size = join()
native, served = _native._products, 0
assert (native is not None) == _native.IS_LOADED
TYPES = (torch.bfloat16, torch.float16) if DEVICE == "cuda" else (torch.bfloat16, torch.float16, torch.float32)


def counting(*arguments):
    """The operator, which counts the calls that it served."""
    global served
    results = native(*arguments)
    served += bool(results)
    return results


def listed(results):
    if isinstance(results, torch.Tensor):
        return [results]
    return [one for part in results for one in listed(part)]


def beside(is_served, function, *arguments, **options):
    """Both ways give the same, and the native one served the call itself, or left it to Python."""
    before = served
    _native._products = counting if native else None
    got = listed(function(*arguments, **options))
    assert not native or (served > before) == is_served, (function, is_served)
    _native._products = None
    wanted = listed(function(*arguments, **options))
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype
        assert torch.equal(a, b), function
    assert all(one.isfinite().all() for one in wanted) and any(one.any() for one in wanted)


def twice(function, *arguments, **options):
    """The first call makes a plan in Python."""
    beside(False, function, *arguments, **options)
    beside(True, function, *arguments, **options)


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape).to(dtype)


def fp8(*shape):
    return random(*shape).to(torch.float8_e4m3fn)


def scales(*shape):
    return torch.rand(*shape) + 0.5


def scaled():
    """Products in fp8 with all kinds of scales."""
    one, bias, k, shape = scales(1), random(16), 272, (2 * size, 3)
    x, w, v = fp8(*shape, k), fp8(16, k).t(), fp8(8, k).t()
    rows, blocks = scales(*shape, 1), scales(*shape, 3)
    column, block = scales(16), scales(1, 3).t()
    for x_scale, w_scale, v_scale in ((one, one, one[0]), (rows, column, column[:8]), (blocks, block, block.clone())):
        for dtype, activation in ((torch.bfloat16, "none"), (torch.float16, "silu")):
            options = {"activation": activation, "dtype": dtype}
            weights, both = [w, v], [w_scale, v_scale]
            twice(tt.all_gather_scaled_matmul, x, weights, x_scale, both, **options)
            twice(tt.all_gather_scaled_matmul, x, w, x_scale, w_scale, bias, **options)
            for function in (tt.scaled_matmul_reduce_scatter, tt.scaled_matmul_all_reduce):
                twice(function, x, w, x_scale, w_scale, **options)
                beside(True, function, x, w, x_scale, w_scale, bias, **options)
                beside(True, function, x[:size], w, x_scale if x_scale is one else x_scale[:size], w_scale, **options)
    twice(tt.all_gather_scaled_matmul, x, [w, v], one, [one, one[0]], use_fast_accum=True)
    for function in (tt.scaled_matmul_reduce_scatter, tt.scaled_matmul_all_reduce):
        twice(function, x, w, rows, one)
        twice(function, x, w, rows, one, use_fast_accum=True)
        for arguments in (
            (x, w.contiguous(), one, one),
            (x, w, scales(1, 3, 2 * size).permute(2, 1, 0), one),
            (x, w, one, scales(32)[::2]),
            (x, w, blocks, scales(3, 2)[:, :1]),
            (x, w, one, one, random(32)[::2]),
            (fp8(2 * size * k + 1)[1:].view(-1, k), w, one, one),
            (fp8(2 * size, 9), fp8(5, 9).t(), one, one),
        ):
            beside(False, function, *arguments)
        _native._products = native
        for wrong in ((x, w, scales(3), one), (x, w, one, scales(3)), (x, w, rows[1:], one), (x, w, one, one, one)):
            try:
                function(*wrong)
            except tandem.Error:
                continue
            raise AssertionError(wrong)


with torch.no_grad():
    torch.manual_seed(rank)
    for dtype in TYPES:
        x, cube = random(2 * size, 32, dtype=dtype), random(2 * size, 3, 32, dtype=dtype)
        w, v, bias = random(16, 32, dtype=dtype), random(24, 32, dtype=dtype), random(16, dtype=dtype)
        twice(tt.all_gather_matmul, x, w.t(), bias, "gelu")
        twice(tt.all_gather_matmul, x, [w.t(), v.t()], return_gathered=True)
        twice(tt.all_gather_matmul, cube[:2], [v.t(), w.t()], return_gathered=True)
        for function in (tt.matmul_reduce_scatter, tt.matmul_all_reduce):
            twice(function, x, w.t())
            twice(function, x, w.t(), bias, "silu")
            twice(function, x, w.t().contiguous())
            twice(function, cube, v.t(), None, "relu")
            beside(True, function, x[:size], w.t())  # fewer rows
            beside(6 * size <= 16, function, cube, w.t())  # more rows; plans are for 16 at least
    # Calls that need a copy, another way or a check.
    x, w, bias = random(2 * size, 48), random(16, 48), random(16)
    for function in (tt.matmul_reduce_scatter, tt.matmul_all_reduce):
        twice(function, x, w.t(), bias)
        beside(False, function, random(48, 2 * size).t(), w.t(), bias)
        beside(False, function, x, random(16, 96)[:, ::2].t(), bias)
        beside(False, function, x, w.t(), random(32)[::2])
        beside(False, function, random(2 * size * 48 + 1)[1:].view(-1, 48), w.t(), bias)
        beside(False, function, x, random(16 * 48 + 1)[1:].view(16, 48).t(), bias)
        beside(False, function, x, random(48, 11), random(11))
        negated = torch.complex(torch.zeros_like(x).float(), x.float()).conj().imag  # negated when it is read
        if DEVICE == "cpu":
            twice(function, -negated, w.t().float())
            beside(True, function, negated, w.t().float())
        _native._products = native
        for wrong in ((x, w), (x, w.t(), random(8)), (x, w.t().half()), (x[0], w.t()), (x, w.t(), bias, "tanh")):
            try:
                function(*wrong)
            except tandem.Error:
                continue
            raise AssertionError(wrong)
    beside(False, tt.all_gather_matmul, x, [w.t(), random(48, 16)])  # of two layouts
    scaled()
    # A plan for more rows takes the place of the former one.
    twice(tt.matmul_all_reduce, random(1, 48).expand(64 * size, 48).contiguous(), w.t())
    beside(True, tt.matmul_all_reduce, x, w.t())
    # The world of before is closed, so that its plans must not be used.
    tt.shutdown()
    twice(tt.matmul_all_reduce, x, w.t())
    tt.world_of(device=DEVICE).close()
    twice(tt.matmul_all_reduce, x, w.t())
tt.shutdown()
print("all equal")
