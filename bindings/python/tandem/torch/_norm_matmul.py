"""norm_all_gather_matmul: the norm of this PE's rows, their gather and its products, as one operator.

Each piece of rows is sent as soon as it is normed. It is for inference: it has no gradient.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .._c import NORMS
from .._library import number_option
from . import _groups, _matmul, _norm
from ._collectives import text_argument
from ._ops import call, register


def _checked(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    norm_weight: torch.Tensor | None,
    norm_bias: torch.Tensor | None,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    norm: str,
    epsilon: float,
    activation: str,
) -> None:
    vectors = {"norm_weight": norm_weight, "norm_bias": norm_bias}
    _norm._checked(x, vectors, residual, norm, "none", epsilon, 1.0)
    _matmul._checked(x, weights, biases, activation)


def _normed_rows(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    norm_weight: torch.Tensor | None,
    norm_bias: torch.Tensor | None,
    norm: str,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The norm of rows and their sum with the residual, where no operator of the library takes them."""
    kept = x if residual is None else (x.float() + residual.float()).to(x.dtype)
    if norm == "none":
        return kept, kept
    wide, shape = kept.float(), (x.shape[-1],)
    y = F.rms_norm(wide, shape, None, epsilon) if norm == "rms" else F.layer_norm(wide, shape, None, None, epsilon)
    y = y if norm_weight is None else y * norm_weight.float()
    return (y if norm_bias is None else y + norm_bias.float()).to(x.dtype), kept


def _norm_all_gather_matmul(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    norm_weight: torch.Tensor | None,
    norm_bias: torch.Tensor | None,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    norm: str,
    epsilon: float,
    activation: str,
    keep_sum: bool,
    group: str,
) -> list[torch.Tensor]:
    given = (x, residual, norm_weight, norm_bias)
    _checked(*given, weights, biases, norm, epsilon, activation)
    if not _matmul.is_fused(x, weights):
        rows, kept = _normed_rows(*given, norm, epsilon)
        made = torch.ops.tandem.all_gather_matmul(rows, weights, biases, activation, False, group)
        return [*made, kept.clone()] if keep_sum else made
    if norm != "none" and norm_weight is None:
        norm_weight = _norm._weight(_groups.world_for(group, x.device.type), x)
    flat = x.reshape(-1, x.shape[-1])
    kept = flat.new_empty(flat.shape) if keep_sum else None
    pes = _groups.size_of(group)
    rows = pes * flat.shape[0]
    steps = _matmul.NormSteps(
        {
            "norm": NORMS[norm],
            "epsilon": epsilon,
            "residual": int(residual is not None),
            "norm_bias": int(norm_bias is not None),
            "sum": int(keep_sum),
        },
        {"residual": residual, "norm_weight": norm_weight, "norm_bias": norm_bias, "sum": kept},
    )
    made = _matmul.run("all_gather_gemm", flat, weights, biases, activation, group, (rows, rows), norm=steps)
    shaped = [one.reshape(pes * x.shape[0], *x.shape[1:-1], one.shape[1]) for one in made]
    return shaped if kept is None else [*shaped, kept.reshape(x.shape)]


def _shapes(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    norm_weight: torch.Tensor | None,
    norm_bias: torch.Tensor | None,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    norm: str,
    epsilon: float,
    activation: str,
    keep_sum: bool,
    group: str,
) -> list[torch.Tensor]:
    _checked(x, residual, norm_weight, norm_bias, weights, biases, norm, epsilon, activation)
    rows = _groups.size_of(group) * x.shape[0]
    results = [x.new_empty((rows, *x.shape[1:-1], one.shape[1])) for one in weights]
    return [*results, x.new_empty(x.shape)] if keep_sum else results


register(
    "norm_all_gather_matmul",
    "(Tensor x, Tensor? residual, Tensor? norm_weight, Tensor? norm_bias, Tensor[] weights, Tensor[] biases, str norm, "
    "float epsilon, str activation, bool keep_sum, str group) -> Tensor[]",
    _norm_all_gather_matmul,
    _shapes,
)


def norm_all_gather_matmul(
    x: torch.Tensor,
    weight: Any,
    residual: torch.Tensor | None = None,
    norm_weight: torch.Tensor | None = None,
    *,
    norm_bias: torch.Tensor | None = None,
    norm: str = "rms",
    epsilon: float = 1e-6,
    bias: Any = None,
    activation: str = "none",
    keep_sum: bool = True,
    group: Any = None,
) -> tuple[Any, torch.Tensor | None]:
    """gather(norm(x + residual)) @ weight + bias, activated, and the sum of x and residual.

    x, residual and sum hold this PE's rows. The norm is "rms", "layer" or "none". A list of weights gives a list of
    results from one gather. The sum is None without `keep_sum`.
    """
    for name, one in (("x", x), ("residual", residual), ("norm_weight", norm_weight), ("norm_bias", norm_bias)):
        if one is not None or name == "x":
            _groups.check_tensor(name, one, _norm._TYPES)
    results = call(
        torch.ops.tandem.norm_all_gather_matmul,
        x,
        residual,
        norm_weight,
        norm_bias,
        _matmul._tensors("weight", weight),
        [] if bias is None else _matmul._tensors("bias", bias),
        text_argument("norm", norm),
        number_option("epsilon", epsilon),
        text_argument("activation", activation),
        bool(keep_sum),
        _groups.resolve(group),
    )
    products = results[: len(results) - bool(keep_sum)] if isinstance(weight, (list, tuple)) else results[0]
    return products, results[-1] if keep_sum else None
