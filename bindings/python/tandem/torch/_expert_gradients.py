"""Gradients of dispatch_gemm and gemm_combine."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .. import _c, errors
from . import _gates
from ._experts import gradients_of_combination
from ._matmul import before_activation
from ._routing import Arrays, Problem, problem_of


def _ends(routing: torch.Tensor, problem: Problem) -> torch.Tensor:
    arrays = Arrays(routing, problem)
    return arrays.at(arrays.sizes.starts_at, problem.experts_here() + 1)[1:]


def _refuse_fp8(problem: Problem) -> None:
    if problem.wire != "type":
        raise errors.Unsupported(f"wire: '{problem.wire}' given, allowed with gradients is 'type'")


def keep_products(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keeps the rows for the backward of dispatch_gemm, and with relu the results."""
    x, w, routing, _, _, ctx.activation, _, _, *arguments = inputs
    out, rows, *_ = output
    ctx.save_for_backward(w, routing, rows, out if ctx.activation == "relu" else None)
    ctx.mark_non_differentiable(*output[1:])
    ctx.tokens, ctx.problem = x.shape[0], problem_of(tuple(arguments))


def gradient_of_products(ctx: Any, grad: torch.Tensor, *_: Any) -> tuple[Any, ...]:
    """The gradients of x and w. Activations other than relu need the sums before them: the product runs again."""
    (w, routing, rows, out), problem = ctx.saved_tensors, ctx.problem
    _refuse_fp8(problem)
    ends = _ends(routing, problem)

    def sums() -> torch.Tensor:
        return F.grouped_mm(rows, w.transpose(1, 2), offs=ends)

    grad = grad.contiguous()
    if ctx.activation in _c.GATED:
        grad = _gates.gradient(ctx.activation, grad, sums())
    else:
        grad = before_activation(ctx.activation, grad, out, sums)
    x_grad = w_grad = None
    if ctx.needs_input_grad[0]:
        of_rows = F.grouped_mm(grad, w, offs=ends)
        ones = grad.new_ones((ctx.tokens, problem.top_k), dtype=torch.float32)
        with_ones = Arrays(routing, problem).with_ones()
        x_grad = torch.ops.tandem.combine(of_rows, ones, with_ones, None, *problem.arguments())
    if ctx.needs_input_grad[1]:
        w_grad = F.grouped_mm(grad.t(), rows, offs=ends)
    return (x_grad, w_grad, *(None for _ in range(6 + len(problem.arguments()))))


def keep_results(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keeps the rows and the products for the backward of gemm_combine."""
    a, w, weights, routing, add, _, _, _, *arguments = inputs
    ctx.save_for_backward(a, w, routing, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.tokens, ctx.adds, ctx.problem = weights.shape[0], add is not None, problem_of(tuple(arguments))


def gradient_of_results(ctx: Any, grad: torch.Tensor, _: Any) -> tuple[Any, ...]:
    """The gradients of a, w, weights and the added tensor."""
    (a, w, routing, y), problem = ctx.saved_tensors, ctx.problem
    _refuse_fp8(problem)
    of_y, of_weights = gradients_of_combination(grad, y, routing, problem, ctx.tokens, ctx.needs_input_grad[2])
    ends = _ends(routing, problem)
    a_grad = F.grouped_mm(of_y, w, offs=ends) if ctx.needs_input_grad[0] else None
    w_grad = F.grouped_mm(of_y.t(), a, offs=ends) if ctx.needs_input_grad[1] else None
    rest = (None for _ in range(3 + len(problem.arguments())))
    return (a_grad, w_grad, of_weights, None, grad if ctx.adds else None, *rest)
