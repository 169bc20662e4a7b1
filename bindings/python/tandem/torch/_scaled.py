"""Matrix products in fp8 that overlap their collective, as operators of PyTorch. They are for inference.

x and weights are float8_e4m3fn, and scales are float32. As for torch._scaled_mm, x has
one scale, or one for each row in a last axis of 1. A weight has one, or one for each column. Or x has one for each 128
elements of a row, and a weight one for each block of 128x128. Sums are in float32, and results in bfloat16 or float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import errors
from .._c import ACTIVATIONS
from .._library import shown
from . import _groups, _matmul, _native
from ._collectives import CODES, text_argument
from ._matmul import _GATHER, _REDUCE, _SCATTER
from ._ops import call, call_directly, register
from ._scales import Scales, check_scales, check_shape, multiplied, scales_of

_FP8 = torch.float8_e4m3fn
_OUT = (torch.bfloat16, torch.float16)
def _checked(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    scales: Scales,
    biases: Sequence[torch.Tensor],
    activation: str,
) -> None:
    _groups.check_tensor("x", x, (_FP8,))
    if x.dim() < 2:
        raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed are two axes or more")
    if activation not in ACTIVATIONS:
        raise errors.InvalidArgument(
            f"activation: {shown(activation)} given, allowed is one of {', '.join(ACTIVATIONS)}"
        )
    if scales.dtype not in _OUT:
        raise errors.InvalidType(f"dtype: {scales.dtype} given, allowed are torch.bfloat16 and torch.float16")
    if len(weights) == 0:
        raise errors.InvalidArgument("weight: an empty list given, allowed is at least one weight")
    for name, one in (("weight_scale", scales.weights), ("bias", biases)):
        if len(one) != len(weights) and (name, len(one)) != ("bias", 0):
            raise errors.InvalidArgument(f"{name}: {len(one)} given, allowed are {len(weights)}, as weights")
    for weight in weights:
        _groups.check_tensor("weight", weight, (_FP8,))
        check_shape("weight", weight, (x.shape[-1], weight.shape[-1] if weight.dim() == 2 else 1), x)
    check_scales(x, weights, scales)
    for weight, bias in zip(weights, biases, strict=False):
        _groups.check_tensor("bias", bias, (torch.bfloat16,))
        check_shape("bias", bias, (weight.shape[1],), x)


def is_fused(x: torch.Tensor, weights: Sequence[torch.Tensor]) -> bool:
    """Whether rows of all matrices are multiples of 16 bytes, as operators need. All PEs answer alike."""
    return x.numel() > 0 and x.shape[-1] % 16 == 0 and all(w.shape[1] > 0 and w.shape[1] % 8 == 0 for w in weights)


def _flat(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, x.shape[-1]) if x.numel() > 0 else x.new_empty((0, x.shape[-1]))


def _finished(z: torch.Tensor, biases: Sequence[torch.Tensor], i: int, activation: str, dtype: Any) -> torch.Tensor:
    return _matmul.activated(z + biases[i].float() if biases else z, activation).to(dtype)


def _native_products(
    operator: int,
    x: torch.Tensor,
    weights: list[torch.Tensor],
    x_scale: torch.Tensor,
    weight_scales: list[torch.Tensor],
    biases: list[torch.Tensor],
    activation: str,
    dtype: torch.dtype,
    group: str,
    keeps: bool = False,
    fast: bool = False,
) -> list[torch.Tensor] | None:
    """The results without Python, or None where this call needs a check, a copy or a new plan."""
    if dtype not in _OUT or len(weight_scales) != len(weights):
        return None
    scales = (x_scale, *weight_scales)
    return _native.products(
        operator, x, weights, biases, ACTIVATIONS.get(activation), group, keeps, scales, CODES[dtype], fast
    )


def _all_gather_shape(
    x: torch.Tensor,
    weights: list[torch.Tensor],
    x_scale: torch.Tensor,
    weight_scales: list[torch.Tensor],
    biases: list[torch.Tensor],
    activation: str,
    dtype: torch.dtype,
    keep_gathered: bool,
    group: str,
    use_fast_accum: bool = False,
) -> list[torch.Tensor]:
    _checked(x, weights, scales_of(x, weights, x_scale, weight_scales, dtype, use_fast_accum), biases, activation)
    rows = _groups.size_of(group) * x.shape[0]
    results = [x.new_empty((rows, *x.shape[1:-1], w.shape[1]), dtype=dtype) for w in weights]
    return [*results, x.new_empty((rows, *x.shape[1:]))] if keep_gathered else results


def _all_gather_scaled_matmul(
    x: torch.Tensor,
    weights: list[torch.Tensor],
    x_scale: torch.Tensor,
    weight_scales: list[torch.Tensor],
    biases: list[torch.Tensor],
    activation: str,
    dtype: torch.dtype,
    keep_gathered: bool,
    group: str,
    use_fast_accum: bool = False,
) -> list[torch.Tensor]:
    tensors = (x, weights, x_scale, weight_scales, biases)
    made = _native_products(_GATHER, *tensors, activation, dtype, group, keep_gathered, use_fast_accum)
    if made is not None:
        return made
    last = (activation, dtype, keep_gathered, group, use_fast_accum)
    results = _all_gather_shape(*tensors, *last)
    flat, scales = _flat(x), scales_of(x, weights, x_scale, weight_scales, dtype, use_fast_accum)
    if is_fused(x, weights):
        m = _groups.size_of(group) * flat.shape[0]
        whole = x.new_empty((m, x.shape[-1])) if keep_gathered else None
        made = _matmul.run("all_gather_gemm", flat, weights, biases, activation, group, (m, m), whole, scales)
    else:
        whole = torch.ops.tandem.all_gather(flat, group)
        if x_scale.dim() > 1:
            x_scale = torch.ops.tandem.all_gather(x_scale.reshape(-1), group)
        made = [
            _finished(multiplied(whole, w, x_scale, s, scales.blocks), biases, i, activation, dtype)
            for i, (w, s) in enumerate(zip(weights, weight_scales, strict=True))
        ]
    if keep_gathered and whole is not None:
        made.append(whole)
    return [one.reshape(result.shape) for one, result in zip(made, results, strict=True)]


def _sum_shape(scatters: bool) -> Any:
    def shape(
        x: torch.Tensor,
        weight: torch.Tensor,
        x_scale: torch.Tensor,
        weight_scale: torch.Tensor,
        bias: torch.Tensor | None,
        activation: str,
        dtype: torch.dtype,
        group: str,
        use_fast_accum: bool = False,
    ) -> torch.Tensor:
        biases = [] if bias is None else [bias]
        scales = scales_of(x, [weight], x_scale, [weight_scale], dtype, use_fast_accum)
        _checked(x, [weight], scales, biases, activation)
        rows = _matmul.scattered_rows(x, group) if scatters else x.shape[0]
        return x.new_empty((rows, *x.shape[1:-1], weight.shape[1]), dtype=dtype)

    return shape


def _sum(scatters: bool) -> Any:
    shape = _sum_shape(scatters)

    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        x_scale: torch.Tensor,
        weight_scale: torch.Tensor,
        bias: torch.Tensor | None,
        activation: str,
        dtype: torch.dtype,
        group: str,
        use_fast_accum: bool = False,
    ) -> torch.Tensor:
        biases = [] if bias is None else [bias]
        tensors = (x, [weight], x_scale, [weight_scale], biases)
        last = (activation, dtype, group)
        made = _native_products(_SCATTER if scatters else _REDUCE, *tensors, *last, fast=use_fast_accum)
        if made is not None:
            return made[0]
        result = shape(x, weight, x_scale, weight_scale, bias, *last, use_fast_accum)
        flat = _flat(x)
        scales = scales_of(x, [weight], x_scale, [weight_scale], dtype, use_fast_accum)
        if is_fused(x, [weight]):
            operator = "gemm_reduce_scatter" if scatters else "gemm_all_reduce"
            rows = (flat.shape[0], result.numel() // weight.shape[1])
            return _matmul.run(operator, flat, [weight], biases, activation, group, rows, scales=scales)[0].reshape(
                result.shape
            )
        product = multiplied(flat, weight, x_scale, weight_scale, scales.blocks)
        reduce = torch.ops.tandem.reduce_scatter if scatters else torch.ops.tandem.all_reduce
        return _finished(reduce(product, "sum", group), biases, 0, activation, dtype).reshape(result.shape)

    return run


_LAST = "str activation, ScalarType dtype, str group, bool use_fast_accum=False"
_ONE = f"(Tensor x, Tensor weight, Tensor x_scale, Tensor weight_scale, Tensor? bias, {_LAST}) -> Tensor"
for _name, _schema, _kernel, _fake in (
    (
        "all_gather_scaled_matmul",
        "(Tensor x, Tensor[] weights, Tensor x_scale, Tensor[] weight_scales, Tensor[] biases, str activation, "
        "ScalarType dtype, bool keep_gathered, str group, bool use_fast_accum=False) -> Tensor[]",
        _all_gather_scaled_matmul,
        _all_gather_shape,
    ),
    ("scaled_matmul_reduce_scatter", _ONE, _sum(True), _sum_shape(True)),
    ("scaled_matmul_all_reduce", _ONE, _sum(False), _sum_shape(False)),
):
    register(_name, _schema, _kernel, _fake)
    if _native.IS_LOADED:
        call_directly(getattr(torch.ops.tandem, _name), _kernel)


def _list(name: str, value: Any, types: tuple[torch.dtype, ...]) -> list[torch.Tensor]:
    made = list(value) if isinstance(value, (list, tuple)) else [value]
    for one in made:
        _groups.check_tensor(name, one, types)
    return made


def _dtype(value: Any) -> torch.dtype:
    if not isinstance(value, torch.dtype):
        raise errors.InvalidType(f"dtype: {shown(value)} given, allowed are torch.bfloat16 and torch.float16")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed are True and False")
    return value


def all_gather_scaled_matmul(
    x: torch.Tensor,
    weight: Any,
    x_scale: torch.Tensor,
    weight_scale: Any,
    bias: Any = None,
    activation: str = "none",
    dtype: torch.dtype = torch.bfloat16,
    group: Any = None,
    use_fast_accum: bool = False,
) -> Any:
    """gather(x * x_scale) @ (weight * weight_scale) + bias, activated. Lists of weights give a list of results.

    A single `x_scale` is the same on all PEs. Scales of blocks are [..., ceil(k / 128)] of x and
    [ceil(k / 128), ceil(n / 128)] of a weight. They are those of this PE's parts, whose first block begins with the part.
    `use_fast_accum` allows GPUs less precise sums, as in torch._scaled_mm, but not with scales of blocks.
    """
    results = call(
        torch.ops.tandem.all_gather_scaled_matmul,
        _list("x", x, (_FP8,))[0],
        _list("weight", weight, (_FP8,)),
        _list("x_scale", x_scale, (torch.float32,))[0],
        _list("weight_scale", weight_scale, (torch.float32,)),
        [] if bias is None else _list("bias", bias, (torch.bfloat16,)),
        text_argument("activation", activation),
        _dtype(dtype),
        False,
        _groups.resolve(group),
        _flag("use_fast_accum", use_fast_accum),
    )
    return results if isinstance(weight, (list, tuple)) else results[0]


def _one(
    operator: Any,
    x: Any,
    weight: Any,
    x_scale: Any,
    weight_scale: Any,
    bias: Any,
    activation: Any,
    dtype: Any,
    group: Any,
    fast: Any,
) -> torch.Tensor:
    for name, one, kind in (
        ("x", x, _FP8),
        ("weight", weight, _FP8),
        ("x_scale", x_scale, torch.float32),
        ("weight_scale", weight_scale, torch.float32),
    ):
        _groups.check_tensor(name, one, (kind,))
    if bias is not None:
        _groups.check_tensor("bias", bias, (torch.bfloat16,))
    name = _groups.resolve(group)
    activation = text_argument("activation", activation)
    last = (activation, _dtype(dtype), name, _flag("use_fast_accum", fast))
    return call(operator, x, weight, x_scale, weight_scale, bias, *last)


def scaled_matmul_reduce_scatter(
    x: torch.Tensor,
    weight: torch.Tensor,
    x_scale: torch.Tensor,
    weight_scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "none",
    dtype: torch.dtype = torch.bfloat16,
    group: Any = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """This PE's rows of the sum of (x * x_scale) @ (weight * weight_scale) over all PEs, with bias and activation."""
    operator = torch.ops.tandem.scaled_matmul_reduce_scatter
    return _one(operator, x, weight, x_scale, weight_scale, bias, activation, dtype, group, use_fast_accum)


def scaled_matmul_all_reduce(
    x: torch.Tensor,
    weight: torch.Tensor,
    x_scale: torch.Tensor,
    weight_scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "none",
    dtype: torch.dtype = torch.bfloat16,
    group: Any = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """The sum of (x * x_scale) @ (weight * weight_scale) over all PEs, with bias and activation."""
    operator = torch.ops.tandem.scaled_matmul_all_reduce
    return _one(operator, x, weight, x_scale, weight_scale, bias, activation, dtype, group, use_fast_accum)
