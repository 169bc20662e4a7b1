"""Products in fp8 with scales beside float64 references."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.nn.functional as F
from common import check_close, gathered, join

rank, size = join()
FP8 = torch.float8_e4m3fn
ACTIVATIONS = {"none": lambda z: z, "relu": torch.relu, "gelu": F.gelu, "silu": F.silu}


def random(seed, *shape):
    torch.manual_seed(seed)
    return torch.randn(*shape)


def every(x):
    """The tensors of all PEs in float64."""
    kind = x.dtype
    return [one.view(kind).double() for one in gathered(torch.atleast_1d(x).contiguous().view(torch.uint8))]


def case(rows, k, columns, per_row, per_column, biased, activation, dtype):
    """All operators with one shape."""
    activate, name = ACTIVATIONS[activation], (rows, k, columns, per_row, per_column, activation)
    x = random(rank, *rows, k).to(FP8)
    x_scale = random(10 + rank, *rows, 1).abs() if per_row else torch.tensor(0.5)
    weights = [random(20 + rank + i, n, k).to(FP8).t() for i, n in enumerate(columns)]
    scales = [random(30 + rank + i, n if per_column else 1).abs() for i, n in enumerate(columns)]
    biases = [random(40 + i, n).bfloat16() for i, n in enumerate(columns)] if biased else None
    got = tt.all_gather_scaled_matmul(x, weights, x_scale, scales, biases, activation, dtype)
    whole = torch.cat([a * b for a, b in zip(every(x), every(x_scale))])
    for i, one in enumerate(got):
        z = whole @ (weights[i].double() * scales[i].double())
        assert one.dtype == dtype
        check_close(name, one, activate(z + biases[i].double() if biased else z))

    x = random(rank, size * rows[0], *rows[1:], k).to(FP8)
    x_scale = random(10 + rank, *x.shape[:-1], 1).abs() if per_row else torch.tensor([0.5 + rank])
    w, scale, bias = weights[0], scales[0], biases[0] if biased else None
    parts = zip(*(every(one) for one in (x, x_scale, w, scale)))
    z = sum((a * b) @ (c * d) for a, b, c, d in parts)
    z = activate(z + bias.double() if biased else z)
    got = tt.scaled_matmul_all_reduce(x, w, x_scale, scale, bias, activation, dtype)
    check_close(name, got, z)
    fast = tt.scaled_matmul_all_reduce(x, w, x_scale, scale, bias, activation, dtype, use_fast_accum=True)
    assert torch.equal(fast, got), "CPUs compute the precise sums"
    got = tt.scaled_matmul_reduce_scatter(x, w, x_scale, scale, bias, activation, dtype)
    check_close(name, got, z.chunk(size)[rank])


def of_blocks(scale, rows, columns):
    """Scales of 128 rows and columns as a matrix of `rows` and `columns`; of one row each without `rows`."""
    scale = scale.repeat_interleave(128, -1)[..., :columns]
    return scale if rows is None else scale.repeat_interleave(128, 0)[:rows]


def block_case(rows, k, columns, dtype):
    """All operators with scales of blocks."""
    steps, name = -(-k // 128), ("blocks", rows, k, columns)
    x = random(rank, *rows, k).to(FP8)
    x_scale = random(10 + rank, *rows, steps).abs()
    weights = [random(20 + rank + i, n, k).to(FP8).t() for i, n in enumerate(columns)]
    scales = [random(30 + rank + i, -(-n // 128), steps).abs().t() for i, n in enumerate(columns)]
    values = [w.double() * of_blocks(s, k, n).double() for w, s, n in zip(weights, scales, columns, strict=True)]
    got = tt.all_gather_scaled_matmul(x, weights, x_scale, scales, None, "none", dtype)
    whole = torch.cat([a * of_blocks(b, None, k) for a, b in zip(every(x), every(x_scale), strict=True)])
    for one, value in zip(got, values, strict=True):
        check_close(name, one, whole @ value)

    x = random(rank, size * rows[0], *rows[1:], k).to(FP8)
    x_scale = random(10 + rank, *x.shape[:-1], steps).abs()
    parts = zip(every(x), every(x_scale), gathered(values[0]), strict=True)
    z = sum((a * of_blocks(b, None, k)) @ w for a, b, w in parts)
    check_close(name, tt.scaled_matmul_all_reduce(x, weights[0], x_scale, scales[0], dtype=dtype), z)
    got = tt.scaled_matmul_reduce_scatter(x, weights[0], x_scale, scales[0], dtype=dtype)
    check_close(name, got, z.chunk(size)[rank])


BF16, F16 = torch.bfloat16, torch.float16
for arguments in (
    ((4,), 32, [16, 8], True, True, True, "gelu", BF16),
    ((2, 3), 16, [8], False, False, False, "none", F16),
    ((1,), 48, [24], True, False, False, "silu", BF16),
    ((4,), 16, [8], False, True, True, "relu", BF16),
    ((3,), 9, [5, 7], True, True, True, "silu", BF16),  # rows that no operator of the library takes
    ((0,), 16, [8], True, True, False, "none", BF16),
):
    case(*arguments)
for arguments in (
    ((4,), 272, [136, 8], BF16),
    ((2, 3), 128, [200], F16),  # a single block of k
    ((3,), 133, [5, 131], BF16),  # rows that no operator of the library takes
    ((1,), 1024, [8], BF16),  # as many scales as columns
):
    block_case(*arguments)
tt.shutdown()
print("all equal")
