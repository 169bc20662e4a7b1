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
