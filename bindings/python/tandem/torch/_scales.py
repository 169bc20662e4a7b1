"""Scales of products in fp8: of tensors, of rows and columns, or of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .. import _c, errors
from . import _groups

_BLOCK = 128


@dataclass(frozen=True)
class Scales:
    """The scales of products in fp8, and the type of the results.

    That of x is one, or one for each row in a last axis of 1. That of a weight is one, or one for each column. With
    `blocks`, x has one for each 128 elements of a row, and a weight one for each 128 of k and of n. With `fast`, GPUs
    may have less precise sums.
    """

    x: torch.Tensor
    weights: Sequence[torch.Tensor]
    dtype: torch.dtype
    blocks: bool = False
    fast: bool = False

    def options(self) -> dict[str, int]:
        """Fields of tandem_problem."""
        return {
            "out_type": _c.TYPES[str(self.dtype).removeprefix("torch.")],
            "a_scale_per_row": int(self.x.dim() > 1 and not self.blocks),
            "b_scale_per_column": int(self.weights[0].numel() > 1 and not self.blocks),
            "block_scales": int(self.blocks),
            "fast_accumulation": int(self.fast),
        }

    def laid_out(self) -> list[torch.Tensor]:
        """All of them as the library takes them; blocks of a weight lie as n x k."""
        return [one.contiguous() for one in (self.x, *(w.t() if self.blocks else w for w in self.weights))]


def _blocks(count: int) -> int:
    return -(-count // _BLOCK)


def scales_of(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    x_scale: torch.Tensor,
    scales: Sequence[torch.Tensor],
    dtype: Any,
    fast: bool = False,
) -> Scales:
    """The scales with their kind, which follows from their shapes."""
    steps = _blocks(x.shape[-1]) if x.dim() > 0 else 0
    pairs = [(w, s) for w, s in zip(weights, scales, strict=False) if w.dim() == 2]
    in_blocks = tuple(x_scale.shape) == (*x.shape[:-1], steps) and len(pairs) == len(weights) == len(scales)
    in_blocks = in_blocks and all(tuple(s.shape) == (steps, _blocks(w.shape[1])) for w, s in pairs)
    # A single step with a scale for each weight is one of rows and weights as well.
    in_blocks = in_blocks and (steps > 1 or any(s.numel() not in (1, w.shape[1]) for w, s in pairs))
    return Scales(x_scale, scales, dtype, in_blocks, fast)


def check_scales(x: torch.Tensor, weights: Sequence[torch.Tensor], scales: Scales) -> None:
    _groups.check_tensor("x_scale", scales.x, (torch.float32,))
    if scales.blocks and scales.fast:
        raise errors.InvalidArgument("use_fast_accum: True given with scales of blocks, allowed is False")
    if not scales.blocks and (scales.x.dim() > 1 or scales.x.numel() != 1):
        check_shape("x_scale", scales.x, (*x.shape[:-1], 1), x)
    for weight, scale in zip(weights, scales.weights, strict=True):
        _groups.check_tensor("weight_scale", scale, (torch.float32,))
        if not scales.blocks and scale.numel() not in (1, weight.shape[1]):
            raise errors.InvalidArgument(
                f"weight_scale: shape {tuple(scale.shape)} given, allowed are 1 and {weight.shape[1]} elements"
            )
        _groups.check_like_device("weight_scale", scale, x)
    _groups.check_like_device("x_scale", scales.x, x)
    if not scales.blocks and len({scale.numel() > 1 for scale in scales.weights}) > 1:
        raise errors.InvalidArgument("weight_scale: single scales and vectors given, allowed is one kind")


def check_shape(name: str, given: torch.Tensor, shape: tuple[int, ...], x: torch.Tensor) -> None:
    if tuple(given.shape) != shape or given.device != x.device:
        raise errors.InvalidArgument(
            f"{name}: shape {tuple(given.shape)} on {given.device} given, allowed is {shape} on {x.device}"
        )


def _spread(scale: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    """Scales of blocks, repeated for each of `count` values along an axis."""
    return scale.repeat_interleave(_BLOCK, axis).narrow(axis, 0, count)


def multiplied(
    flat: torch.Tensor, weight: torch.Tensor, x_scale: torch.Tensor, scale: torch.Tensor, blocks: bool
) -> torch.Tensor:
    """This PE's product in float32."""
    if blocks:
        k, n = weight.shape
        a = flat.float() * _spread(x_scale.reshape(flat.shape[0], -1), 1, k)
        return a @ (weight.float() * _spread(_spread(scale, 0, k), 1, n))
    return (flat.float() @ weight.float()) * x_scale.reshape(-1, 1) * scale.reshape(1, -1)
