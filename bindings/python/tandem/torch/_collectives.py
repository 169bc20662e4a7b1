"""Collectives as operators of PyTorch: torch.ops.tandem.all_reduce and so on, out of place, with gradients.

A gradient is that of the sum of all PEs' losses. So `all_reduce` is its own adjoint. `all_gather` and `reduce_scatter`
are each other's, and so are `broadcast` and `reduce`, `gather` and `scatter`. Rooted operators give every PE a result
of the same shape: on PEs other than the root of `reduce` and `gather` it holds zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import errors
from .._c import OPERATIONS
from .._c import TYPES as _CODES
from .._library import shown, whole_option
from . import _groups, _native
from ._ops import call, call_directly, register

TYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
)
CODES = {one: _CODES[str(one).removeprefix("torch.")] for one in TYPES}


def transfer(name: str, x: torch.Tensor, out: torch.Tensor, count: int, group: str, *last: int) -> None:
    """Enqueues a collective of contiguous tensors on the current stream; on CPUs it is done on return."""
    world = _groups.world_for(group, x.device.type).world
    world._enqueue(name, x.data_ptr(), out.data_ptr(), count, CODES[x.dtype], *last, _groups.stream_of(x))


def _checked(x: torch.Tensor, op: str | None, root: int | None, group: str, has_parts: bool) -> int:
    """Checks the arguments of an operator and returns the number of PEs."""
    _groups.check_tensor("x", x, TYPES)
    if op is not None and op not in OPERATIONS:
        raise errors.InvalidArgument(f"op: {shown(op)} given, allowed is one of {', '.join(OPERATIONS)}")
    pes = pes_of(x, group, has_parts)
    if root is not None and not 0 <= root < pes:
        raise errors.InvalidArgument(f"root: {root} given, allowed is 0 to {pes - 1}")
    return pes


def pes_of(x: torch.Tensor, group: str, has_parts: bool) -> int:
    """The number of PEs of a group. Raises InvalidArgument where `x` has no equal part for each of them."""
    pes = _groups.size_of(group)
    if has_parts and (x.dim() == 0 or x.shape[0] % pes != 0):
        raise errors.InvalidArgument(
            f"x: shape {tuple(x.shape)} given, allowed is a first axis that is a multiple of {pes} PEs"
        )
    return pes


def joined(x: torch.Tensor, pes: int) -> torch.Tensor:
    """A new tensor for `x` of all PEs along the first axis."""
    return x.new_empty((pes, *x.shape[1:]) if x.dim() == 0 else (pes * x.shape[0], *x.shape[1:]))


def part(x: torch.Tensor, pes: int) -> torch.Tensor:
    """A new tensor for one PE's part of the first axis."""
    return x.new_empty((x.shape[0] // pes, *x.shape[1:]))


def define(
    name: str, arguments: str, run: Callable[..., Any], fake: Callable[..., Any], backward: Callable[..., Any]
) -> None:
    """Registers tandem::name with its kernel, its shape function and its gradient."""
    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.rest = inputs[1:]

    def gradient(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        return (backward(grad, *ctx.rest), *(None for _ in ctx.rest))

    register(name, f"({arguments}) -> Tensor", run, fake, gradient, keep)


def _linear(op: str, grad: torch.Tensor, group: str) -> torch.Tensor:
    """The gradient of the sum that an operation makes, before its own communication."""
    if op == "avg":
        return grad / _groups.size_of(group)
    if op != "sum":
        raise errors.Unsupported(f"op: '{op}' given, allowed with gradients are sum and avg")
    return grad


def _all_reduce(x: torch.Tensor, op: str, group: str) -> torch.Tensor:
    if (made := _native.collective("all_reduce", x, CODES.get(x.dtype), group, OPERATIONS.get(op))) is not None:
        return made
    _checked(x, op, None, group, False)
    x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    transfer("all_reduce", x, out, x.numel(), group, OPERATIONS[op])
    return out


def _all_reduce_shape(x: torch.Tensor, op: str, group: str) -> torch.Tensor:
    _checked(x, op, None, group, False)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _reduce(x: torch.Tensor, op: str, root: int, group: str) -> torch.Tensor:
    _checked(x, op, root, group, False)
    x, out = x.contiguous(), torch.zeros_like(x, memory_format=torch.contiguous_format)
    transfer("reduce", x, out, x.numel(), group, OPERATIONS[op], root)
    return out


def _reduce_shape(x: torch.Tensor, op: str, root: int, group: str) -> torch.Tensor:
    _checked(x, op, root, group, False)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _reduce_scatter(x: torch.Tensor, op: str, group: str) -> torch.Tensor:
    made = _native.collective("reduce_scatter", x, CODES.get(x.dtype), group, OPERATIONS.get(op), True)
    if made is not None:
        return made
    pes = _checked(x, op, None, group, True)
    out = part(x, pes)
    transfer("reduce_scatter", x.contiguous(), out, out.numel(), group, OPERATIONS[op])
    return out


def _all_gather(x: torch.Tensor, group: str) -> torch.Tensor:
    if (made := _native.collective("all_gather", x, CODES.get(x.dtype), group)) is not None:
        return made
    pes = _checked(x, None, None, group, False)
    out = joined(x, pes)
    transfer("all_gather", x.contiguous(), out, x.numel(), group)
    return out


def _all_to_all(x: torch.Tensor, group: str) -> torch.Tensor:
    if (made := _native.collective("all_to_all", x, CODES.get(x.dtype), group, has_parts=True)) is not None:
        return made
    pes = _checked(x, None, None, group, True)
    x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    transfer("all_to_all", x, out, x.numel() // pes, group)
    return out


def _all_to_all_shape(x: torch.Tensor, group: str) -> torch.Tensor:
    _checked(x, None, None, group, True)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _broadcast(x: torch.Tensor, root: int, group: str) -> torch.Tensor:
    _checked(x, None, root, group, False)
    x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    transfer("broadcast", x, out, x.numel(), group, root)
    return out


def _broadcast_shape(x: torch.Tensor, root: int, group: str) -> torch.Tensor:
    _checked(x, None, root, group, False)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _gather(x: torch.Tensor, root: int, group: str) -> torch.Tensor:
    out = joined(x, _checked(x, None, root, group, False)).zero_()
    transfer("gather", x.contiguous(), out, x.numel(), group, root)
    return out


def _scatter(x: torch.Tensor, root: int, group: str) -> torch.Tensor:
    out = part(x, _checked(x, None, root, group, True))
    transfer("scatter", x.contiguous(), out, out.numel(), group, root)
    return out


define(
    "all_reduce",
    "Tensor x, str op, str group",
    _all_reduce,
    _all_reduce_shape,
    lambda grad, op, group: torch.ops.tandem.all_reduce(_linear(op, grad, group), "sum", group),
)
define(
    "reduce",
    "Tensor x, str op, int root, str group",
    _reduce,
    _reduce_shape,
    lambda grad, op, root, group: torch.ops.tandem.broadcast(_linear(op, grad, group), root, group),
)
define(
    "reduce_scatter",
    "Tensor x, str op, str group",
    _reduce_scatter,
    lambda x, op, group: part(x, _checked(x, op, None, group, True)),
    lambda grad, op, group: torch.ops.tandem.all_gather(_linear(op, grad, group), group),
)
define(
    "all_gather",
    "Tensor x, str group",
    _all_gather,
    lambda x, group: joined(x, _checked(x, None, None, group, False)),
    lambda grad, group: torch.ops.tandem.reduce_scatter(grad, "sum", group),
)
define(
    "all_to_all",
    "Tensor x, str group",
    _all_to_all,
    _all_to_all_shape,
    lambda grad, group: torch.ops.tandem.all_to_all(grad, group),
)
define(
    "broadcast",
    "Tensor x, int root, str group",
    _broadcast,
    _broadcast_shape,
    lambda grad, root, group: torch.ops.tandem.reduce(grad, "sum", root, group),
)
define(
    "gather",
    "Tensor x, int root, str group",
    _gather,
    lambda x, root, group: joined(x, _checked(x, None, root, group, False)),
    lambda grad, root, group: torch.ops.tandem.scatter(grad, root, group),
)
define(
    "scatter",
    "Tensor x, int root, str group",
    _scatter,
    lambda x, root, group: part(x, _checked(x, None, root, group, True)),
    lambda grad, root, group: torch.ops.tandem.gather(grad, root, group),
)

if _native.IS_LOADED:
    for _name, _kernel in (
        ("all_reduce", _all_reduce),
        ("reduce_scatter", _reduce_scatter),
        ("all_gather", _all_gather),
        ("all_to_all", _all_to_all),
    ):
        call_directly(getattr(torch.ops.tandem, _name), _kernel)


def _tensor(x: object) -> torch.Tensor:
    _groups.check_tensor("x", x, TYPES)
    return x  # type: ignore[return-value]


def text_argument(name: str, value: object) -> str:
    """`value`, if it is a string. Raises InvalidType."""
    if not isinstance(value, str):
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is a string")
    return value


def _root(value: object) -> int:
    number = whole_option("root", value)
    if not 0 <= number < 2**31:
        raise errors.InvalidArgument(f"root: {number} given, allowed is the number of a PE")
    return number


def all_reduce(x: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:
    """Reduces `x` of all PEs: sum, prod, min, max or avg."""
    return call(torch.ops.tandem.all_reduce, _tensor(x), text_argument("op", op), _groups.resolve(group))


def reduce(x: torch.Tensor, op: str = "sum", root: int = 0, group: Any = None) -> torch.Tensor:
    """Reduces `x` of all PEs. PE `root` gets the result, the others zeros."""
    return call(torch.ops.tandem.reduce, _tensor(x), text_argument("op", op), _root(root), _groups.resolve(group))


def reduce_scatter(x: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:
    """Reduces `x` of all PEs. PE i gets the i-th part of the first axis."""
    return call(torch.ops.tandem.reduce_scatter, _tensor(x), text_argument("op", op), _groups.resolve(group))


def all_gather(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Joins `x` of all PEs along the first axis."""
    return call(torch.ops.tandem.all_gather, _tensor(x), _groups.resolve(group))


def all_to_all(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Exchanges parts of the first axis: part j of PE i becomes part i of PE j."""
    return call(torch.ops.tandem.all_to_all, _tensor(x), _groups.resolve(group))


def broadcast(x: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:
    """Returns the tensor of PE `root`. All PEs pass tensors of the same shape."""
    return call(torch.ops.tandem.broadcast, _tensor(x), _root(root), _groups.resolve(group))


def gather(x: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:
    """Joins `x` of all PEs along the first axis. PE `root` gets the result, the others zeros."""
    return call(torch.ops.tandem.gather, _tensor(x), _root(root), _groups.resolve(group))


def scatter(x: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:
    """Returns part i of the first axis of the root's `x` on PE i. All PEs pass tensors of the same shape."""
    return call(torch.ops.tandem.scatter, _tensor(x), _root(root), _groups.resolve(group))
