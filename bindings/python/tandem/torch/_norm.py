"""all_reduce_norm: an all-reduce with the residual, the norm and the quantisation behind it, as one operator.

It is for inference: it has no gradient.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import errors
from .._c import NORMS, QUANTISATIONS, TYPES
from .._library import number_option, shown
from .._plan import NormPlan
from . import _groups
from ._collectives import text_argument
from ._ops import call, register

_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_GROUP = 128  # elements with one scale
_LEAST_ROWS = 16  # of a plan


def _checked(
    x: torch.Tensor,
    vectors: dict[str, torch.Tensor | None],
    residual: torch.Tensor | None,
    norm: str,
    quantisation: str,
    epsilon: float,
    scale: float,
) -> None:
    _groups.check_tensor("x", x, _TYPES)
    if x.dim() == 0 or x.shape[-1] == 0:
        raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed is a last axis of 1 or more")
    for name, value, allowed in (("norm", norm, NORMS), ("quantisation", quantisation, QUANTISATIONS)):
        if value not in allowed:
            raise errors.InvalidArgument(f"{name}: {shown(value)} given, allowed is one of {', '.join(allowed)}")
    for name, number in (("epsilon", epsilon), ("scale", scale)):
        if not 0 < number < math.inf:
            raise errors.InvalidArgument(f"{name}: {number} given, allowed is a positive finite number")
    if scale != 1 and quantisation != "static":
        raise errors.InvalidArgument(f"scale: {scale} given with quantisation {quantisation}, allowed with static")
    if residual is not None:
        _check_like("residual", residual, x, tuple(x.shape))
    for name, vector in vectors.items():
        if vector is None:
            continue
        if norm == "none" and name != "bias":
            raise errors.InvalidArgument(f"{name}: a tensor given without a norm, allowed with rms and layer")
        _check_like(name, vector, x, (x.shape[-1],))


def _check_like(name: str, value: torch.Tensor, x: torch.Tensor, shape: tuple[Any, ...]) -> None:
    _groups.check_tensor(name, value, _TYPES)
    _groups.check_like(name, value, x)
    if tuple(value.shape) != shape:
        raise errors.InvalidArgument(f"{name}: shape {tuple(value.shape)} given, allowed is {shape}")


def _results(x: torch.Tensor, quantisation: str, keep_sum: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """New tensors for output, sum and scales. A result that was not asked for is empty."""
    hidden = x.shape[-1]
    out = x.new_empty(x.shape, dtype=x.dtype if quantisation == "none" else torch.float8_e4m3fn)
    scales = {"row": 1, "128": -(-hidden // _GROUP)}.get(quantisation)
    return (
        out,
        x.new_empty(x.shape if keep_sum else (0,)),
        x.new_empty((0,) if scales is None else (*x.shape[:-1], scales), dtype=torch.float32),
    )


def _address(x: torch.Tensor | None) -> int | None:
    return None if x is None or x.numel() == 0 else x.data_ptr()


def _plan(found: _groups.GroupWorld, rows: int, **problem: Any) -> NormPlan:
    """A plan for `rows` rows. Each power of two has its own, because the algorithm depends on it."""
    problem |= {"max_rows": max(_LEAST_ROWS, 1 << (rows - 1).bit_length()), "any_memory": 1}
    key = ("all_reduce_norm", *problem.values())
    if key not in found.plans:
        found.plans[key] = NormPlan(found.world, **problem)
    return found.plans[key]


def _weight(found: _groups.GroupWorld, x: torch.Tensor) -> torch.Tensor:
    """Ones, for a norm without weights."""
    key = ("ones", x.shape[-1], x.dtype, x.device)
    if key not in found.constants:
        found.constants[key] = x.new_ones(x.shape[-1])
    return found.constants[key]


def _all_reduce_norm(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    norm_bias: torch.Tensor | None,
    norm: str,
    epsilon: float,
    quantisation: str,
    scale: float,
    keep_sum: bool,
    group: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    vectors = {"weight": weight, "bias": bias, "norm_bias": norm_bias}
    _checked(x, vectors, residual, norm, quantisation, epsilon, scale)
    out, kept, scales = _results(x, quantisation, keep_sum)
    found = _groups.world_for(group, x.device.type)
    if x.numel() == 0:
        return out, kept, scales
    if norm != "none" and weight is None:
        weight = _weight(found, x)
    given = [None if one is None else one.contiguous() for one in (x, residual, weight, bias, norm_bias)]
    rows = x.numel() // x.shape[-1]
    plan = _plan(
        found,
        rows,
        hidden=x.shape[-1],
        type=TYPES[str(x.dtype).removeprefix("torch.")],
        norm=NORMS[norm],
        epsilon=epsilon,
        residual=int(residual is not None),
        bias=int(bias is not None),
        norm_bias=int(norm_bias is not None),
        sum=int(keep_sum),
        quantisation=QUANTISATIONS[quantisation],
        scale=scale,
    )
    names = ("in_", "residual", "weight", "bias", "norm_bias")
    addresses = {name: _address(one) for name, one in zip(names, given, strict=True)}
    plan.run(
        _groups.stream_of(x),
        rows=rows,
        **addresses,
        out=_address(out),
        sum=_address(kept),
        scales=_address(scales),
    )
    return out, kept, scales


def _shapes(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    norm_bias: torch.Tensor | None,
    norm: str,
    epsilon: float,
    quantisation: str,
    scale: float,
    keep_sum: bool,
    group: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    vectors = {"weight": weight, "bias": bias, "norm_bias": norm_bias}
    _checked(x, vectors, residual, norm, quantisation, epsilon, scale)
    return _results(x, quantisation, keep_sum)


register(
    "all_reduce_norm",
    "(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, Tensor? norm_bias, str norm, float epsilon, "
    "str quantisation, float scale, bool keep_sum, str group) -> (Tensor, Tensor, Tensor)",
    _all_reduce_norm,
    _shapes,
)


def all_reduce_norm(
    x: torch.Tensor,
    residual: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    *,
    bias: torch.Tensor | None = None,
    norm_bias: torch.Tensor | None = None,
    norm: str = "rms",
    epsilon: float = 1e-6,
    quantisation: str = "none",
    scale: float = 1.0,
    keep_sum: bool = True,
    group: Any = None,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """The norm of the sum of `x` over all PEs plus `bias` and `residual`, which all PEs hold.

    Returns the norm, the sum, and the scales. The sum is None without `keep_sum`. The norm is "rms", "layer" or "none".
    `quantisation` gives a norm in float8_e4m3fn: "static" divides by `scale`, "row" and "128" by a scale for each row,
    or for each 128 elements of one. The scales are None but for these two.
    """
    _groups.check_tensor("x", x, _TYPES)
    for name, one in (("residual", residual), ("weight", weight), ("bias", bias), ("norm_bias", norm_bias)):
        if one is not None:
            _groups.check_tensor(name, one, _TYPES)
    out, kept, scales = call(
        torch.ops.tandem.all_reduce_norm,
        x,
        residual,
        weight,
        bias,
        norm_bias,
        text_argument("norm", norm),
        number_option("epsilon", epsilon),
        text_argument("quantisation", quantisation),
        number_option("scale", scale),
        bool(keep_sum),
        _groups.resolve(group),
    )
    return out, kept if keep_sum else None, scales if quantisation in ("row", "128") else None
