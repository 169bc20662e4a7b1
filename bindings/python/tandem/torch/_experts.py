"""Layers with experts as operators of PyTorch: the routing of tokens, the dispatch of rows, and their combination.

    routing = tt.route(ids, weights, experts=256, hidden=7168)
    rows = tt.dispatch(x, routing)              the rows of this PE's experts; routing.counts has their numbers
    out = tt.combine(experts(rows), routing)    the weighted sum of each token's rows

With n PEs, PE p holds the experts [p, p + 1) * experts / n. With tp_size=s, groups of s PEs hold the same experts, and
each PE a part of their columns. docs/reference/experts.md has the order of rows. The gradient of `dispatch` is a
combination with weights of 1, and that of `combine` is a dispatch. Both use the same routing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .. import _c, errors
from .._library import shown, whole_option
from . import _groups
from ._collectives import text_argument
from ._ops import call, register
from ._routing import TYPES, Arrays, Problem, problem_of

_IDS = (torch.int64, torch.int32)
_MOST_CHOICES = 16
_GROUP = 128  # elements with one scale
FP8 = torch.float8_e4m3fn
# The arguments of all operators that name a plan.
PROBLEM = (
    "int experts, int top_k, int hidden, int max_tokens, ScalarType dtype, str wire, str layout, int align, "
    "int most_rows, int tp_size, str group"
)


def check_shape(name: str, x: torch.Tensor, shape: tuple[int, ...], like: torch.Tensor) -> None:
    if tuple(x.shape) != shape or x.device != like.device:
        raise errors.InvalidArgument(
            f"{name}: shape {tuple(x.shape)} on {x.device} given, allowed is {shape} on {like.device}"
        )


def check_rows(name: str, x: torch.Tensor, problem: Problem) -> None:
    if x.dim() != 2 or x.shape[1] != problem.hidden:
        raise errors.InvalidArgument(f"{name}: shape {tuple(x.shape)} given, allowed is tokens x {problem.hidden}")
    if x.shape[0] > problem.max_tokens:
        raise errors.InvalidArgument(f"{name}: {x.shape[0]} tokens given, allowed are 0 to {problem.max_tokens}")


def check_routing(routing: torch.Tensor, problem: Problem, like: torch.Tensor) -> None:
    _groups.check_tensor("routing", routing, (torch.int32,))
    check_shape("routing", routing, (problem.sizes().routing_bytes // 4,), like)


# The routing.


def new_routing(ids: torch.Tensor, weights: torch.Tensor | None, *arguments: Any) -> torch.Tensor:
    problem = problem_of(arguments)
    _groups.check_tensor("ids", ids, _IDS)
    if ids.dim() != 2 or ids.shape[1] != problem.top_k:
        raise errors.InvalidArgument(f"ids: shape {tuple(ids.shape)} given, allowed is tokens x {problem.top_k}")
    if ids.shape[0] > problem.max_tokens:
        raise errors.InvalidArgument(f"ids: {ids.shape[0]} tokens given, allowed are 0 to {problem.max_tokens}")
    if weights is not None:
        _groups.check_tensor("weights", weights, (torch.float32,))
        check_shape("weights", weights, tuple(ids.shape), ids)
    # Zeros, because a routing does not write the entries of tokens that a PE does not have.
    return ids.new_zeros((problem.sizes().routing_bytes // 4,), dtype=torch.int32)


def choices_of(ids: torch.Tensor, weights: torch.Tensor | None, routing: torch.Tensor) -> dict[str, Any]:
    """The fields of tandem_experts_choices for contiguous tensors."""
    return {
        "tokens": ids.shape[0],
        "ids": ids.data_ptr(),
        "id_type": _c.TYPES[str(ids.dtype).removeprefix("torch.")],
        "weights": None if weights is None else weights.data_ptr(),
        "routing": routing.data_ptr(),
    }


def _route(ids: torch.Tensor, weights: torch.Tensor | None, *arguments: Any) -> torch.Tensor:
    routing = new_routing(ids, weights, *arguments)
    ids = ids.contiguous()
    weights = None if weights is None else weights.contiguous()
    choices = choices_of(ids, weights, routing)
    problem_of(arguments).plan(ids.device.type).route(_groups.stream_of(ids), **choices)
    return routing


# Rows to experts.


def new_rows(
    x: torch.Tensor, x_scales: torch.Tensor | None, routing: torch.Tensor, clear: bool, *arguments: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    problem = problem_of(arguments)
    _groups.check_tensor("x", x, (FP8,) if problem.wire == "given" else (problem.dtype,))
    check_rows("x", x, problem)
    check_routing(routing, problem, x)
    groups = -(-problem.hidden // _GROUP)
    if (x_scales is not None) != (problem.wire == "given"):
        if x_scales is None:
            raise errors.InvalidType(f"x_scales: None given, allowed is a tensor, because the wire is '{problem.wire}'")
        raise errors.InvalidArgument(
            f"x_scales: a tensor given, allowed with wire '{problem.wire}' is None, and with 'given' a tensor"
        )
    if x_scales is not None:
        _groups.check_tensor("x_scales", x_scales, (torch.float32,))
        check_shape("x_scales", x_scales, (x.shape[0], groups), x)
    count = problem.sizes().dispatched_rows
    new = x.new_zeros if clear else x.new_empty
    if problem.wire == "type":
        return new((count, problem.hidden)), x.new_empty((0,), dtype=torch.float32)
    return new((count, problem.hidden), dtype=FP8), new((count, groups), dtype=torch.float32)


def rows_of(
    x: torch.Tensor, x_scales: torch.Tensor | None, routing: torch.Tensor, rows: torch.Tensor, scales: torch.Tensor
) -> dict[str, Any]:
    """The fields of tandem_experts_rows for contiguous tensors."""
    return {
        "tokens": x.shape[0],
        "x": x.data_ptr(),
        "x_scales": None if x_scales is None else x_scales.data_ptr(),
        "routing": routing.data_ptr(),
        "out": rows.data_ptr(),
        "out_scales": scales.data_ptr() or None,
    }


def _dispatch(
    x: torch.Tensor, x_scales: torch.Tensor | None, routing: torch.Tensor, clear: bool, *arguments: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, scales = new_rows(x, x_scales, routing, clear, *arguments)
    x = x.contiguous()
    x_scales = None if x_scales is None else x_scales.contiguous()
    moved = rows_of(x, x_scales, routing, rows, scales)
    problem_of(arguments).plan(x.device.type).dispatch(_groups.stream_of(x), **moved)
    return rows, scales


# Results to tokens.


def _new_sums(
    y: torch.Tensor, weights: torch.Tensor, routing: torch.Tensor, add: torch.Tensor | None, *arguments: Any
) -> torch.Tensor:
    problem = problem_of(arguments)
    _groups.check_tensor("y", y, (problem.dtype,))
    check_shape("y", y, (problem.sizes().rows, problem.hidden), routing)
    check_routing(routing, problem, y)
    out = y.new_empty((weights.shape[0], problem.hidden))
    check_rows("weights", out, problem)
    if add is not None:
        _groups.check_tensor("add", add, (problem.dtype,))
        check_shape("add", add, tuple(out.shape), y)
    return out


def _combine(
    y: torch.Tensor, weights: torch.Tensor, routing: torch.Tensor, add: torch.Tensor | None, *arguments: Any
) -> torch.Tensor:
    out = _new_sums(y, weights, routing, add, *arguments)
    y = y.contiguous()
    add = None if add is None else add.contiguous()
    problem_of(arguments).plan(y.device.type).combine(
        _groups.stream_of(y),
        tokens=out.shape[0],
        y=y.data_ptr(),
        routing=routing.data_ptr(),
        add=None if add is None else add.data_ptr(),
        out=out.data_ptr(),
    )
    return out


# Gradients.


def _dispatch_keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, _, routing, _, *arguments = inputs
    ctx.save_for_backward(routing)
    ctx.tokens, ctx.problem = x.shape[0], problem_of(tuple(arguments))


def gradient_of_rows(grad: torch.Tensor, routing: torch.Tensor, problem: Problem, tokens: int) -> torch.Tensor:
    """The gradient of the rows that a dispatch moved."""
    if problem.wire != "type":
        raise errors.Unsupported(f"wire: '{problem.wire}' given, allowed with gradients is 'type'")
    arrays = Arrays(routing, problem)
    if problem.layout == "in_place":
        grad = arrays.placed(grad, arrays.first_rows())
    ones = grad.new_ones((tokens, problem.top_k), dtype=torch.float32)
    return torch.ops.tandem.combine(grad, ones, arrays.with_ones(), None, *problem.arguments())


def _dispatch_gradient(ctx: Any, grad: torch.Tensor, _: Any) -> tuple[Any, ...]:
    x_grad = gradient_of_rows(grad, ctx.saved_tensors[0], ctx.problem, ctx.tokens)
    return (x_grad, *(None for _ in range(3 + len(ctx.problem.arguments()))))


def _combine_keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    y, weights, routing, add, *arguments = inputs
    ctx.save_for_backward(y, routing)
    ctx.tokens, ctx.adds, ctx.problem = weights.shape[0], add is not None, problem_of(tuple(arguments))


def gradients_of_combination(
    grad: torch.Tensor, y: torch.Tensor, routing: torch.Tensor, problem: Problem, tokens: int, of_weights: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The gradients of `y`, zeros in rows without a choice, and of the weights of `tokens` tokens if wanted."""
    if problem.wire != "type":
        raise errors.Unsupported(f"wire: '{problem.wire}' given, allowed with gradients is 'type'")
    arrays = Arrays(routing, problem)
    rows = arrays.rows()
    sent, _ = torch.ops.tandem.dispatch(grad, None, routing, True, *problem.arguments())
    if problem.layout == "in_place":
        slots = torch.arange(arrays.pes * problem.max_tokens, device=y.device).view(arrays.pes, -1, 1)
        sent = sent[arrays.by_row(slots.expand(rows.shape), rows)]
    is_used = arrays.by_row(torch.ones_like(rows, dtype=torch.bool), rows).unsqueeze(1)
    weights = arrays.by_row(arrays.weights(), rows).unsqueeze(1)
    y_grad = torch.where(is_used, sent * weights, 0.0).to(y.dtype)
    weights_grad = None
    if of_weights:
        # The PEs that share an expert have a part of the product each.
        products = torch.where(is_used, y.float() * sent.float(), 0.0).sum(1)
        of_choices = torch.cat((products, products.new_zeros(1)))[rows.reshape(-1)]
        own = torch.ops.tandem.reduce_scatter(of_choices, "sum", problem.group)
        weights_grad = own.view(problem.max_tokens, problem.top_k)[:tokens]
    return y_grad, weights_grad


def _combine_gradient(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    (y, routing), problem = ctx.saved_tensors, ctx.problem
    wanted = ctx.needs_input_grad[1]
    y_grad, weights_grad = gradients_of_combination(grad, y, routing, problem, ctx.tokens, wanted)
    return (y_grad, weights_grad, None, grad if ctx.adds else None, *(None for _ in problem.arguments()))


_GRADIENTS = {"dispatch": (_dispatch_gradient, _dispatch_keep), "combine": (_combine_gradient, _combine_keep)}
for _name, _schema, _kernel, _fake in (
    ("route", f"(Tensor ids, Tensor? weights, {PROBLEM}) -> Tensor", _route, new_routing),
    (
        "dispatch",
        f"(Tensor x, Tensor? x_scales, Tensor routing, bool clear, {PROBLEM}) -> (Tensor, Tensor)",
        _dispatch,
        new_rows,
    ),
    ("combine", f"(Tensor y, Tensor weights, Tensor routing, Tensor? add, {PROBLEM}) -> Tensor", _combine, _new_sums),
):
    register(_name, _schema, _kernel, _fake, *_GRADIENTS.get(_name, ()))


# The functions.


@dataclass(frozen=True)
class Routing:
    """The choices of all PEs' tokens, for any number of dispatches and combinations."""

    memory: torch.Tensor
    """The routing of tandem/layer/experts.h, in words of 32 bits."""
    weights: torch.Tensor
    """The weights of this PE's choices."""
    problem: Problem
    """The options of the plan."""

    @property
    def arrays(self) -> Arrays:
        return Arrays(self.memory, self.problem)

    @property
    def counts(self) -> torch.Tensor:
        """The rows of each expert of this PE."""
        return self.arrays.at(self.arrays.sizes.counts_at, self._experts_here)

    @property
    def starts(self) -> torch.Tensor:
        """The first row of each expert of this PE, and the end of the last one's rows."""
        return self.arrays.at(self.arrays.sizes.starts_at, self._experts_here + 1)

    @property
    def slots(self) -> torch.Tensor:
        """PE * max_tokens + token of each row, up to the last of `starts`; -1 for a row that only aligns."""
        return self.arrays.at(self.arrays.sizes.slots_at, self.arrays.sizes.rows)

    @property
    def tokens(self) -> torch.Tensor:
        """The number of tokens of each PE."""
        return self.arrays.at(self.arrays.sizes.tokens_at, self.problem.pes())

    @property
    def _experts_here(self) -> int:
        return self.problem.experts_here()


def problem_for(
    ids: Any,
    weights: Any,
    *,
    experts: int,
    hidden: int,
    max_tokens: int | None = None,
    dtype: torch.dtype = torch.bfloat16,
    wire: str = "type",
    layout: str = "sorted",
    align: int = 1,
    most_rows: int = 0,
    tp_size: int = 1,
    group: Any = None,
) -> Problem:
    """The options of a plan for these choices. Raises InvalidArgument and InvalidType."""
    _groups.check_tensor("ids", ids, _IDS)
    if ids.dim() != 2 or not 1 <= ids.shape[1] <= _MOST_CHOICES:
        raise errors.InvalidArgument(
            f"ids: shape {tuple(ids.shape)} given, allowed is tokens x choices of a token, 1 to {_MOST_CHOICES}"
        )
    if weights is not None:
        _groups.check_tensor("weights", weights, (torch.float32,))
    if not isinstance(dtype, torch.dtype):
        raise errors.InvalidType(f"dtype: {shown(dtype)} given, allowed are torch.bfloat16 and torch.float16")
    return Problem(
        whole_option("experts", experts),
        ids.shape[1],
        whole_option("hidden", hidden),
        max(1, ids.shape[0]) if max_tokens is None else whole_option("max_tokens", max_tokens),
        dtype,
        text_argument("wire", wire),
        text_argument("layout", layout),
        whole_option("align", align),
        whole_option("most_rows", most_rows),
        whole_option("tp_size", tp_size),
        _groups.resolve(group),
    )


def routing_with(memory: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None, problem: Problem) -> Routing:
    """A routing with the weights of this PE's choices, which are 1 by default."""
    if weights is None:
        weights = ids.new_ones(ids.shape, dtype=torch.float32)
    return Routing(memory, weights, problem)


def route(
    ids: torch.Tensor, weights: torch.Tensor | None = None, *, experts: int, hidden: int, **options: Any
) -> Routing:
    """Makes the choices of all tokens known to all PEs.

    `ids` holds tokens x choices of a token: an expert, or -1. `weights` are float32, and 1 by default. `hidden` and
    the option `dtype` (bfloat16 by default) are those of rows. All PEs pass the same options. `max_tokens` is the most
    tokens of a PE. Its default is the number of rows of `ids`, which is then the same on all PEs.
    docs/reference/experts.md has `wire`, `layout`, `align`, `most_rows` and `tp_size`. `group` is the process group.
    """
    problem = problem_for(ids, weights, experts=experts, hidden=hidden, **options)
    given = None if weights is None else weights.detach()
    memory = call(torch.ops.tandem.route, ids, given, *problem.arguments())
    return routing_with(memory, ids, weights, problem)


def routing_of(value: Any) -> Routing:
    if not isinstance(value, Routing):
        raise errors.InvalidType(f"routing: {shown(value)} given, allowed is the result of tandem.torch.route")
    return value


def dispatch(x: torch.Tensor, routing: Routing, x_scales: torch.Tensor | None = None) -> Any:
    """Moves the rows of `x` to the experts that their tokens chose.

    Returns the rows of this PE's experts, as many as the PEs' most tokens could need, and for fp8 also their scales.
    Rows beyond `routing.counts` are zeros where torch records gradients, and else undefined.
    """
    problem = routing_of(routing).problem
    _groups.check_tensor("x", x, (*TYPES, FP8))
    if x_scales is not None:
        _groups.check_tensor("x_scales", x_scales, (torch.float32,))
    clear = torch.is_grad_enabled()
    rows, scales = call(torch.ops.tandem.dispatch, x, x_scales, routing.memory, clear, *problem.arguments())
    return rows if problem.wire == "type" else (rows, scales)


def combine(y: torch.Tensor, routing: Routing, add: torch.Tensor | None = None) -> torch.Tensor:
    """Adds the rows that this PE's tokens got from their experts, times their weights, and `add`."""
    problem = routing_of(routing).problem
    _groups.check_tensor("y", y, TYPES)
    if add is not None:
        _groups.check_tensor("add", add, TYPES)
    return call(torch.ops.tandem.combine, y, routing.weights, routing.memory, add, *problem.arguments())
