"""Collectives with codes of 8 bits between PEs, as operators of PyTorch.

They lose precision (docs/reference/quantised.md), so only a call of its own asks for them. A gradient is that of the
exact collective, and it travels unquantised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import errors
from .._c import WIRES
from .._library import shown
from . import _groups
from ._collectives import define, joined, part, pes_of, text_argument, transfer
from ._ops import call

_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def _pes(x: torch.Tensor, wire: str, group: str, has_parts: bool) -> int:
    _groups.check_tensor("x", x, _TYPES)
    if wire not in WIRES:
        raise errors.InvalidArgument(f"wire: {shown(wire)} given, allowed is one of {', '.join(WIRES)}")
    return pes_of(x, group, has_parts)


def _same(x: torch.Tensor, wire: str, group: str) -> torch.Tensor:
    _pes(x, wire, group, False)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _part(x: torch.Tensor, wire: str, group: str) -> torch.Tensor:
    return part(x, _pes(x, wire, group, True))


def _joined(x: torch.Tensor, wire: str, group: str) -> torch.Tensor:
    return joined(x, _pes(x, wire, group, False))


def _define(name: str, shape: Callable[..., Any], counts_result: bool, backward: Callable[..., Any]) -> None:
    def run(x: torch.Tensor, wire: str, group: str) -> torch.Tensor:
        out = shape(x, wire, group)
        transfer(name, x.contiguous(), out, (out if counts_result else x).numel(), group, WIRES[wire])
        return out

    define(name, "Tensor x, str wire, str group", run, shape, backward)


_define("all_reduce_quantised", _same, True, lambda grad, _, group: torch.ops.tandem.all_reduce(grad, "sum", group))
_define("reduce_scatter_quantised", _part, True, lambda grad, _, group: torch.ops.tandem.all_gather(grad, group))
_define(
    "all_gather_quantised",
    _joined,
    False,
    lambda grad, _, group: torch.ops.tandem.reduce_scatter(grad, "sum", group),
)


def _call(operator: Any, x: Any, wire: Any, group: Any) -> torch.Tensor:
    _groups.check_tensor("x", x, _TYPES)
    return call(operator, x, text_argument("wire", wire), _groups.resolve(group))


def all_reduce_quantised(x: torch.Tensor, wire: str = "fp8", group: Any = None) -> torch.Tensor:
    """The sum of `x` of all PEs, which travels as fp8 or int8 with a scale for each 128 elements."""
    return _call(torch.ops.tandem.all_reduce_quantised, x, wire, group)


def reduce_scatter_quantised(x: torch.Tensor, wire: str = "fp8", group: Any = None) -> torch.Tensor:
    """This PE's part of the first axis of such a sum."""
    return _call(torch.ops.tandem.reduce_scatter_quantised, x, wire, group)


def all_gather_quantised(x: torch.Tensor, wire: str = "fp8", group: Any = None) -> torch.Tensor:
    """All tensors along the first axis, each rounded to fp8 or int8 with such scales."""
    return _call(torch.ops.tandem.all_gather_quantised, x, wire, group)
