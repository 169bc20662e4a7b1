"""The routing of tokens and the dispatch of their rows as one operator of PyTorch.

    rows, routing = tt.route_and_dispatch(x, ids, weights, experts=256)
    out = tt.combine(experts(rows), routing)

It gives what `route` and `dispatch` give one after the other.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import errors
from . import _experts, _groups
from ._ops import call, register
from ._routing import TYPES, problem_of


def _new(
    x: torch.Tensor,
    x_scales: torch.Tensor | None,
    ids: torch.Tensor,
    weights: torch.Tensor | None,
    clear: bool,
    *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if x.dim() == 0 or ids.dim() == 0 or x.shape[0] != ids.shape[0]:
        raise errors.InvalidArgument(
            f"ids: shape {tuple(ids.shape)} given, allowed are as many rows as x has: {tuple(x.shape)}"
        )
    routing = _experts.new_routing(ids, weights, *arguments)
    return (*_experts.new_rows(x, x_scales, routing, clear, *arguments), routing)


def _route_and_dispatch(
    x: torch.Tensor,
    x_scales: torch.Tensor | None,
    ids: torch.Tensor,
    weights: torch.Tensor | None,
    clear: bool,
    *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows, scales, routing = _new(x, x_scales, ids, weights, clear, *arguments)
    x, ids = x.contiguous(), ids.contiguous()
    x_scales = None if x_scales is None else x_scales.contiguous()
    weights = None if weights is None else weights.contiguous()
    choices = _experts.choices_of(ids, weights, routing)
    moved = _experts.rows_of(x, x_scales, routing, rows, scales)
    problem_of(arguments).plan(x.device.type).route_and_dispatch(_groups.stream_of(x), choices, moved)
    return rows, scales, routing


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    x, _, _, _, _, *arguments = inputs
    ctx.save_for_backward(output[2])
    ctx.tokens, ctx.problem = x.shape[0], problem_of(tuple(arguments))


def _gradient(ctx: Any, grad: torch.Tensor, _: Any, __: Any) -> tuple[Any, ...]:
    x_grad = _experts.gradient_of_rows(grad, ctx.saved_tensors[0], ctx.problem, ctx.tokens)
    return (x_grad, *(None for _ in range(4 + len(ctx.problem.arguments()))))


register(
    "route_and_dispatch",
    f"(Tensor x, Tensor? x_scales, Tensor ids, Tensor? weights, bool clear, {_experts.PROBLEM}) "
    "-> (Tensor, Tensor, Tensor)",
    _route_and_dispatch,
    _new,
    _gradient,
    _keep,
)


def route_and_dispatch(
    x: torch.Tensor,
    ids: torch.Tensor,
    weights: torch.Tensor | None = None,
    *,
    experts: int,
    x_scales: torch.Tensor | None = None,
    dtype: torch.dtype | None = None,
    group: Any = None,
    **options: Any,
) -> tuple[Any, _experts.Routing]:
    """Makes the choices of all tokens known to all PEs, and moves the rows of `x` to the experts that they chose.

    Returns what `dispatch` returns, and the routing. `x` and `ids` hold a row for each token. `dtype` is that of
    combined rows: by default that of `x`, and bfloat16 where `x` is fp8. The other arguments are those of `route` and
    `dispatch`.
    """
    _groups.check_tensor("x", x, (*TYPES, _experts.FP8))
    if x.dim() != 2:
        raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed is tokens x elements")
    if options.get("hidden", x.shape[1]) != x.shape[1]:
        raise errors.InvalidArgument(f"hidden: {options['hidden']} given, allowed is {x.shape[1]}, the elements of x")
    if x_scales is not None:
        _groups.check_tensor("x_scales", x_scales, (torch.float32,))
    if dtype is None:
        dtype = torch.bfloat16 if x.dtype == _experts.FP8 else x.dtype
    options = {**options, "hidden": x.shape[1], "dtype": dtype, "group": group}
    problem = _experts.problem_for(ids, weights, experts=experts, **options)
    given = None if weights is None else weights.detach()
    rows, scales, memory = call(
        torch.ops.tandem.route_and_dispatch, x, x_scales, ids, given, torch.is_grad_enabled(), *problem.arguments()
    )
    routing = _experts.routing_with(memory, ids, weights, problem)
    return (rows if problem.wire == "type" else (rows, scales)), routing
