"""norm_all_gather_matmul: the norm of this PE's rows, their gather and its products, as one operator.

Each piece of rows is sent as soon as it is normed. It is for inference: it has no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F

from .._c import NORMS
from .._library import number_option
from . import _groups, _matmul, _norm
from ._collectives import text_argument
from ._ops import call, register


@dataclass(frozen=True)
class _Norm:
    """The steps before the gather, with their tensors."""

    residual: torch.Tensor | None
    weight: torch.Tensor | None
    bias: torch.Tensor | None
    kind: str
    epsilon: float

    def check(self, x: torch.Tensor) -> None:
        vectors = {"norm_weight": self.weight, "norm_bias": self.bias}
        _norm._checked(x, vectors, self.residual, self.kind, "none", self.epsilon, 1.0)

    def rows(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The norm of rows and their sum with the residual, where no operator of the library takes them."""
        kept = x if self.residual is None else (x.float() + self.residual.float()).to(x.dtype)
        if self.kind == "none":
            return kept, kept
        wide, shape = kept.float(), (x.shape[-1],)
        is_rms = self.kind == "rms"
        y = F.rms_norm(wide, shape, None, self.epsilon) if is_rms else F.layer_norm(wide, shape, eps=self.epsilon)
        y = y if self.weight is None else y * self.weight.float()
        return (y if self.bias is None else y + self.bias.float()).to(x.dtype), kept

    def fields(self, kept: torch.Tensor | None) -> _matmul.NormSteps:
        """The same for the library, whose sums go to `kept`."""
        numbers = {"norm": NORMS[self.kind], "epsilon": self.epsilon}
        tensors = {"residual": self.residual, "norm_bias": self.bias, "sum": kept}
        given = {name: int(one is not None) for name, one in tensors.items()}
        return _matmul.NormSteps(numbers | given, tensors | {"norm_weight": self.weight})


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
    steps = _Norm(residual, norm_weight, norm_bias, norm, epsilon)
    steps.check(x)
    _matmul._checked(x, weights, biases, activation)
    if not _matmul.is_fused(x, weights):
        rows, kept = steps.rows(x)
        made = torch.ops.tandem.all_gather_matmul(rows, weights, biases, activation, False, group)
        return [*made, kept.clone()] if keep_sum else made
    if norm != "none" and norm_weight is None:
        steps = replace(steps, weight=_norm._weight(_groups.world_for(group, x.device.type), x))
    flat = x.reshape(-1, x.shape[-1])
    kept = flat.new_empty(flat.shape) if keep_sum else None
    pes = _groups.size_of(group)
    m = pes * flat.shape[0]
    made = _matmul.run("all_gather_gemm", flat, weights, biases, activation, group, (m, m), norm=steps.fields(kept))
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
    _Norm(residual, norm_weight, norm_bias, norm, epsilon).check(x)
    _matmul._checked(x, weights, biases, activation)
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
