"""Gated activations: how gates and ups alternate in a matrix, and what follows a product of both."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .. import errors
from .._library import shown
from . import _groups

GROUP = 8
"""Neighbouring gates, which their ups follow, as in tandem/advanced/gemm.h."""


def _pairs(x: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The gates and the ups that alternate along an axis, -1 or -2."""
    gates, ups = x.unflatten(axis, (-1, 2, GROUP)).unbind(axis - 1)
    return gates.flatten(axis - 1, axis), ups.flatten(axis - 1, axis)


def _joined(gates: torch.Tensor, ups: torch.Tensor, axis: int) -> torch.Tensor:
    """Both in turns along the axis."""
    groups = [one.unflatten(axis, (-1, GROUP)) for one in (gates, ups)]
    return torch.stack(groups, axis - 1).flatten(axis - 2, axis)


def _check(name: str, x: Any, step: int) -> None:
    if not isinstance(x, torch.Tensor):
        raise errors.InvalidType(f"{name}: {shown(x)} given, allowed is a tensor")
    if x.dim() < 2 or x.shape[-2] % step != 0:
        raise errors.InvalidArgument(
            f"{name}: shape {tuple(x.shape)} given, allowed are two dimensions or more, with a multiple of {step} rows"
        )


def interleave_gates(gates: torch.Tensor, ups: torch.Tensor) -> torch.Tensor:
    """The matrix whose rows are those of `gates` and `ups` in turns, 8 of each, as a gated activation takes them.

    Both have the same shape, ... x rows x columns, with a multiple of 8 rows. The result has twice as many rows.
    """
    for name, x in (("gates", gates), ("ups", ups)):
        _check(name, x, GROUP)
    _groups.check_like("ups", ups, gates, "gates")
    if ups.shape != gates.shape:
        raise errors.InvalidArgument(f"ups: shape {tuple(ups.shape)} given, allowed is {tuple(gates.shape)}, as gates")
    return _joined(gates, ups, -2)


def separate_gates(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The gates and the ups of a matrix that `interleave_gates` made, whose number of rows is a multiple of 16."""
    _check("w", w, 2 * GROUP)
    return _pairs(w, -2)


def activated(activation: str, sums: torch.Tensor) -> torch.Tensor:
    """The activation "swiglu" or "geglu" of sums whose columns alternate."""
    gates, ups = _pairs(sums, -1)
    return (F.silu(gates) if activation == "swiglu" else F.gelu(gates)) * ups


def gradient(activation: str, grad: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """The gradient of the sums."""
    gates, ups = _pairs(sums, -1)
    if activation == "swiglu":
        of_gates, of_ups = torch.ops.aten.silu_backward(grad * ups, gates), grad * F.silu(gates)
    else:
        of_gates, of_ups = torch.ops.aten.gelu_backward(grad * ups, gates), grad * F.gelu(gates)
    return _joined(of_gates, of_ups, -1)


class _SwiGlu(torch.autograd.Function):
    """Keeps the sums alone, where PyTorch's operations keep each step between."""

    @staticmethod
    def forward(ctx: Any, sums: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(sums)
        return activated("swiglu", sums)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return gradient("swiglu", grad, ctx.saved_tensors[0])


def swiglu(sums: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up of sums whose columns alternate, with gradients."""
    return _SwiGlu.apply(sums)
