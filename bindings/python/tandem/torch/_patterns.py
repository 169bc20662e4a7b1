"""Patterns in graphs of aten operators: all-reduced sums, the norms of their rows, and the fp8 forms of these."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

aten = torch.ops.aten
TYPES = (torch.float32, torch.float16, torch.bfloat16)
_CONVERSIONS = (aten._to_copy.default, aten.to.dtype, torch.ops.prims.convert_element_type.default)
VIEWS = (
    aten.view.default,
    aten.reshape.default,
    aten._unsafe_view.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
)
MOVES = (*VIEWS, *_CONVERSIONS, aten.t.default, aten.permute.default)
"""Functions of one tensor that may be called at any time."""
IN_PLACE = (aten.add_.Tensor, aten.add_.Scalar)
_CLAMPS = (aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default)
_FP8 = torch.float8_e4m3fn
_FP8_MOST = 448.0
SCALE_GROUP = 128
_LEAST_SCALE = 1e-4  # a lower bound of scales below it only matters for rows of almost zeros


def shape_of(node: Any) -> tuple[Any, ...] | None:
    """The shape of a node's tensor, or None for anything else."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def dtype_of(node: Any) -> torch.dtype | None:
    """The element type of a node's tensor, or None for anything else."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def is_call(node: Any, *targets: Any) -> bool:
    """Whether a node calls one of these functions."""
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets


def _plain(node: Any) -> Any:
    """The node before conversions of its type."""
    while is_call(node, *_CONVERSIONS):
        node = node.args[0]
    return node


def _bare(node: Any, last: Node | None = None) -> Any:
    """The node before conversions and views, or `last`, which may be one of them."""
    while node is not last and is_call(node, *_CONVERSIONS, *VIEWS):
        node = node.args[0]
    return node


def _operands(node: Node) -> Iterator[tuple[Any, Any]]:
    """Both orders of the two arguments."""
    first, second = node.args[:2]
    yield first, second
    yield second, first


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_last(axes: Any, of: Any) -> bool:
    shape = shape_of(of)
    return shape is not None and list(axes) in ([-1], [len(shape) - 1])


@dataclass
class Sum:
    """An all-reduce and what is added to its result. `nodes` are those of the all-reduce, the last one first."""

    x: Node
    group: Any
    nodes: tuple[Node, ...]
    residual: Node | None = None
    bias: Node | None = None


@dataclass
class Norm:
    """A norm of the rows of node `of`. Its result is `node`."""

    node: Node
    of: Node
    kind: str
    epsilon: float
    weight: Node | None = None
    bias: Node | None = None


@dataclass
class Quantised:
    """The fp8 form of a norm. `scales` is the node of its scales, where the graph computes them."""

    node: Node
    kind: str
    scale: float = 1.0
    scales: Node | None = None


def _reduced(node: Any) -> Sum | None:
    """The all-reduce whose result is `node`."""
    nodes: tuple[Node, ...] = (node,)
    if is_call(node, torch.ops._c10d_functional.wait_tensor.default):
        node = node.args[0]
        if not is_call(node, torch.ops._c10d_functional.all_reduce.default) or len(node.users) != 1:
            return None
        nodes += (node,)
    elif is_call(node, aten.copy.default):  # torch.distributed.all_reduce, whose result takes the place of its input
        return _reduced(node.args[1]) if len(node.args[1].users) == 1 else None
    elif not is_call(node, torch.ops.tandem.all_reduce.default):
        return None
    x, op, group = node.args
    return Sum(x, group, nodes) if op == "sum" and dtype_of(x) in TYPES else None


def find_sum(node: Any) -> Sum | None:
    """The all-reduce in `node`, which is its result or adds a bias and a residual to it."""
    direct = _reduced(node)
    if direct is not None or not is_call(node, aten.add.Tensor) or node.kwargs:
        return direct
    shape, dtype = shape_of(node), dtype_of(node)
    for term, other in _operands(node):
        if not isinstance(term, Node) or len(term.users) != 1 or dtype_of(other) != dtype:
            continue
        inner = find_sum(term)
        if inner is None or inner.residual is not None or dtype_of(inner.x) != dtype or shape_of(inner.x) != shape:
            continue
        if shape_of(other) == shape:
            inner.residual = other
            return inner
        if inner.bias is None and shape is not None and shape_of(other) == shape[-1:]:
            inner.bias = other
            return inner
    return None


def _vector(node: Any, of: Node) -> Node | None:
    """The weight or bias in `node`: one number for each element of a row, in the type of `of`."""
    found, shape = _plain(node), shape_of(of)
    is_vector = shape is not None and shape_of(found) == shape[-1:] and dtype_of(found) == dtype_of(of)
    return found if is_vector else None


def _root(node: Any) -> tuple[Any, float] | None:
    """`variance` and `epsilon` of rsqrt(variance + epsilon)."""
    if not is_call(node, aten.rsqrt.default) or not is_call(node.args[0], aten.add.Tensor, aten.add.Scalar, *IN_PLACE):
        return None
    for variance, number in _operands(node.args[0]):
        epsilon = _number(number)
        if epsilon is not None and epsilon > 0:
            return variance, epsilon
    return None


def _rms(node: Node) -> Norm | None:
    """s * rsqrt(mean(s^2) + epsilon)."""
    for factor, root in _operands(node):
        found, of = _root(root), _plain(factor)
        if found is None or not is_call(found[0], aten.mean.dim):
            continue
        square, axes = found[0].args[:2]
        if is_call(square, aten.pow.Tensor_Scalar) and square.args[1] == 2:
            factors = (square.args[0],)
        else:
            factors = square.args if is_call(square, aten.mul.Tensor) else (None,)
        if all(_plain(one) is of for one in factors) and _is_last(axes, of):
            return Norm(node, of, "rms", found[1])
    return None


def _layer(node: Node) -> Norm | None:
    """(s - mean) * rsqrt(variance + epsilon) of var_mean's results."""
    for centred, root in _operands(node):
        found = _root(root)
        if found is None or not is_call(centred, aten.sub.Tensor):
            continue
        factor, mean = centred.args[:2]
        if not all(is_call(one, operator.getitem) for one in (found[0], mean)):
            continue
        both, of = mean.args[0], _plain(factor)
        is_pair = found[0].args == (both, 0) and mean.args[1] == 1 and is_call(both, aten.var_mean.correction)
        if is_pair and _plain(both.args[0]) is of and _is_last(both.args[1], of) and both.kwargs["correction"] == 0:
            return Norm(node, of, "layer", found[1])
    return None


def _unweighted(node: Any) -> Norm | None:
    node = _plain(node)
    return (_rms(node) or _layer(node)) if is_call(node, aten.mul.Tensor) else None


def _weighted(node: Any) -> Norm | None:
    node = _plain(node)
    if not is_call(node, aten.mul.Tensor):
        return None
    whole = _unweighted(node)
    if whole is not None:
        return whole
    for inner, weight in _operands(node):
        found = _unweighted(inner)
        if found is not None:
            found.weight = _vector(weight, found.of)
            return found if found.weight is not None else None
    return None


def _composed(node: Node) -> Norm | None:
    """A norm of several operators, with or without weight and bias."""
    plain = _plain(node)
    if not is_call(plain, aten.add.Tensor) or plain.kwargs:
        return _weighted(plain)
    for inner, bias in _operands(plain):
        found = _weighted(inner)
        if found is not None:
            found.bias = _vector(bias, found.of)
            return found if found.bias is not None else None
    return None


def _single(node: Node) -> Norm | None:
    """A norm that is one operator of the graph."""
    call = node.args[0] if is_call(node, operator.getitem) and node.args[1] == 0 else node
    if is_call(call, aten.layer_norm.default, aten.native_layer_norm.default):
        of, shape, weight, bias, epsilon = (*call.args, *[None] * 3)[:5]
        kind, epsilon = "layer", 1e-5 if epsilon is None else epsilon
    elif is_call(call, aten.rms_norm.default, getattr(aten, "_fused_rms_norm", aten.rms_norm).default):
        of, shape, weight, epsilon = (*call.args, *[None] * 2)[:4]
        kind, bias = "rms", None
    else:
        return None
    vectors = [None if one is None else _vector(one, of) for one in (weight, bias)]
    is_known = all((a is None) == (b is None) for a, b in zip((weight, bias), vectors, strict=True))
    if len(shape) != 1 or _number(epsilon) is None or not is_known:
        return None
    return Norm(node, of, kind, float(epsilon), *vectors)


def find_norm(node: Node) -> Norm | None:
    """The norm whose result is `node`, in the type of its rows."""
    found = _single(node) or _composed(node)
    if found is None or dtype_of(node) is None or dtype_of(node) != dtype_of(found.of):
        return None
    found.node = node
    return found


def _limits(clamp: Node) -> tuple[float | None, float | None]:
    low, high = (*clamp.args[1:], None, None)[:2]
    if clamp.target is aten.clamp_max.default:
        low, high = None, low
    return _number(clamp.kwargs.get("min", low)), _number(clamp.kwargs.get("max", high))


def _without_least(node: Any) -> Any:
    """The node before views, conversions and lower bounds close to zero."""
    node = _bare(node)
    while is_call(node, *_CLAMPS):
        low, high = _limits(node)
        if low is None or low > _LEAST_SCALE or high is not None:
            return node
        node = _bare(node.args[0])
    return node


def _scale_kind(scales: Any, y: Node) -> str | None:
    """Returns "row" or "128", if `scales` is the greatest magnitude of each row or group of y, divided by 448."""
    divided = _without_least(scales)
    if is_call(divided, aten.div.Tensor):
        divisor = _number(divided.args[1])
    else:
        factor = _number(divided.args[1]) if is_call(divided, aten.mul.Tensor) else None
        divisor = 1 / factor if factor else None
    greatest = None if divisor is None or abs(divisor / _FP8_MOST - 1) > 1e-6 else _without_least(divided.args[0])
    if not is_call(greatest, aten.amax.default) or not is_call(_plain(greatest.args[0]), aten.abs.default):
        return None
    rows = _plain(greatest.args[0]).args[0]
    if _bare(rows, y) is not y or not _is_last(greatest.args[1], rows):
        return None
    length, hidden = shape_of(rows)[-1], shape_of(y)[-1]
    if length == hidden:
        return "row"
    return "128" if length == SCALE_GROUP and hidden % SCALE_GROUP == 0 else None


def _in_fp8(node: Node) -> list[Node]:
    """The fp8 results of a chain of clamps, views and conversions behind `node`."""
    found: list[Node] = []
    for user in node.users:
        if is_call(user, *_CLAMPS):
            low, high = _limits(user)
            if (low is not None and low > -_FP8_MOST) or (high is not None and high < _FP8_MOST):
                continue
        elif not is_call(user, *_CONVERSIONS, *VIEWS):
            continue
        is_end = dtype_of(user) == _FP8 and not any(is_call(one, *VIEWS) for one in user.users)
        found += [user] if is_end else _in_fp8(user)
    return found


def _scaled(y: Node) -> Iterator[Node]:
    """Quotients and products whose first operand is y."""
    for user in y.users:
        if is_call(user, *_CONVERSIONS, *VIEWS):
            yield from _scaled(user)
        elif is_call(user, aten.div.Tensor, aten.mul.Tensor):
            yield user


def find_quantised(y: Node) -> Quantised | None:
    """The fp8 form of y, if the graph makes one."""
    for node in _scaled(y):
        ends = _in_fp8(node)
        if _bare(node.args[0], y) is not y or len(ends) != 1 or shape_of(ends[0]) != shape_of(y):
            continue
        divides, number = node.target is aten.div.Tensor, _number(node.args[1])
        if number is not None and number > 0:
            return Quantised(ends[0], "static", number if divides else 1 / number)
        kind = _scale_kind(node.args[1], y) if divides else None
        if kind is not None:
            scales = node.args[1]
            while is_call(scales, *VIEWS):
                scales = scales.args[0]
            return Quantised(ends[0], kind, scales=scales)
    return None
