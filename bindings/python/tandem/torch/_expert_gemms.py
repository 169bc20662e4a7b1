"""Products of a layer with experts that overlap the travel of rows.

    routing = tt.route(ids, weights, experts=256, hidden=7168, align=128)
    h = tt.dispatch_gemm(x, routing, gate_up)       rows of this PE's experts times their first matrices
    out = tt.gemm_combine(f(h), routing, down)      the weighted sum of each token's second products

docs/reference/experts.md has the forms. `rule` takes the one that a model predicts to be faster.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .. import _c, errors
from .._library import shown
from .._plan import ExpertGemmsPlan
from . import _groups
from ._collectives import text_argument
from ._experts import (
    PROBLEM,
    Routing,
    check_routing,
    check_rows,
    check_shape,
    gradients_of_combination,
    routing_of,
)
from ._routing import TYPES, Arrays, Problem, problem_of

TILE = 128  # rows of a tile, to which each expert's rows are aligned
_ACTIVATIONS = {**_c.ACTIVATIONS, **_c.GATED}


def _problem_of(arguments: tuple[Any, ...]) -> Problem:
    problem = problem_of(arguments)
    for name, allowed in (("layout", "sorted"), ("wire", "type"), ("align", TILE)):
        if getattr(problem, name) != allowed:
            raise errors.InvalidArgument(
                f"{name}: {shown(getattr(problem, name))} given to products of experts, allowed is {shown(allowed)}"
            )
    return problem


def _plan(problem: Problem, device: str, intermediate: int, activation: str, form: str) -> ExpertGemmsPlan:
    """The plan, which the group's processes make together."""
    key = (problem, intermediate, activation, form)
    found = _groups.world_for(problem.group, device)
    if key not in found.plans:
        found.plans[key] = ExpertGemmsPlan(
            found.world,
            max_tokens=problem.max_tokens,
            hidden=problem.hidden,
            intermediate=intermediate,
            experts=problem.experts,
            top_k=problem.top_k,
            type=problem.fields()["type"],
            activation=_ACTIVATIONS[activation],
            dispatch_gemm=_c.EXPERT_FORMS[form],
            gemm_combine=_c.EXPERT_FORMS[form],
        )
    return found.plans[key]


def _check_weights(name: str, w: torch.Tensor, shape: tuple[int, int, int], problem: Problem) -> None:
    _groups.check_tensor(name, w, (problem.dtype,))
    if tuple(w.shape) != shape:
        raise errors.InvalidArgument(f"{name}: shape {tuple(w.shape)} given, allowed is {shape}")


def _columns(w: torch.Tensor, activation: str) -> int:
    if activation not in _ACTIVATIONS:
        raise errors.InvalidArgument(
            f"activation: {shown(activation)} given, allowed is one of {', '.join(_ACTIVATIONS)}"
        )
    if w.dim() != 3:
        raise errors.InvalidArgument(f"w: shape {tuple(w.shape)} given, allowed are three dimensions")
    return int(w.shape[1]) // (2 if activation in _c.GATED else 1)


# Rows to experts, and the first product.


def _new_products(
    x: torch.Tensor, w: torch.Tensor, routing: torch.Tensor, activation: str, form: str, clear: bool, *arguments: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    problem = _problem_of(arguments)
    _groups.check_tensor("x", x, (problem.dtype,))
    check_rows("x", x, problem)
    check_routing(routing, problem, x)
    intermediate = _columns(w, activation)
    _check_weights("w", w, (problem.experts // problem.pes(), w.shape[1], problem.hidden), problem)
    new = x.new_zeros if clear else x.new_empty
    rows = problem.sizes().rows
    return new((rows, intermediate)), new((rows, problem.hidden))


def _dispatch_gemm(
    x: torch.Tensor, w: torch.Tensor, routing: torch.Tensor, activation: str, form: str, clear: bool, *arguments: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    out, rows = _new_products(x, w, routing, activation, form, clear, *arguments)
    x, w = x.contiguous(), w.contiguous()
    _plan(_problem_of(arguments), x.device.type, out.shape[1], activation, form).dispatch(
        _groups.stream_of(x),
        tokens=x.shape[0],
        x=x.data_ptr(),
        routing=routing.data_ptr(),
        b=w.data_ptr(),
        rows=rows.data_ptr(),
        out=out.data_ptr(),
    )
    return out, rows


# The second product, and results to tokens.


def _new_results(
    a: torch.Tensor,
    w: torch.Tensor,
    weights: torch.Tensor,
    routing: torch.Tensor,
    add: torch.Tensor | None,
    form: str,
    *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    problem = _problem_of(arguments)
    _groups.check_tensor("a", a, (problem.dtype,))
    if a.dim() != 2:
        raise errors.InvalidArgument(f"a: shape {tuple(a.shape)} given, allowed are two dimensions")
    check_shape("a", a, (problem.sizes().rows, a.shape[1]), routing)
    check_routing(routing, problem, a)
    _check_weights("w", w, (problem.experts // problem.pes(), problem.hidden, a.shape[1]), problem)
    out = a.new_empty((weights.shape[0], problem.hidden))
    check_rows("weights", out, problem)
    if add is not None:
        _groups.check_tensor("add", add, (problem.dtype,))
        check_shape("add", add, tuple(out.shape), a)
    return out, a.new_empty((problem.sizes().rows, problem.hidden))


def _gemm_combine(
    a: torch.Tensor,
    w: torch.Tensor,
    weights: torch.Tensor,
    routing: torch.Tensor,
    add: torch.Tensor | None,
    form: str,
    *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    out, y = _new_results(a, w, weights, routing, add, form, *arguments)
    a, w = a.contiguous(), w.contiguous()
    add = None if add is None else add.contiguous()
    _plan(_problem_of(arguments), a.device.type, a.shape[1], "none", form).combine(
        _groups.stream_of(a),
        tokens=out.shape[0],
        a=a.data_ptr(),
        routing=routing.data_ptr(),
        b=w.data_ptr(),
        y=y.data_ptr(),
        add=None if add is None else add.data_ptr(),
        out=out.data_ptr(),
    )
    return out, y


# Gradients.


def _ends(routing: torch.Tensor, problem: Problem) -> torch.Tensor:
    arrays = Arrays(routing, problem)
    return arrays.at(arrays.sizes.starts_at, problem.experts // problem.pes() + 1)[1:]


def _products_keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, w, routing, activation, _, clear, *arguments = inputs
    ctx.save_for_backward(w, routing, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.tokens, ctx.problem = x.shape[0], _problem_of(tuple(arguments))
    ctx.activation, ctx.clear = activation, clear


def _products_gradient(ctx: Any, grad: torch.Tensor, _: Any) -> tuple[Any, ...]:
    (w, routing, rows), problem = ctx.saved_tensors, ctx.problem
    if ctx.activation != "none":
        raise errors.Unsupported(f"activation: '{ctx.activation}' given, allowed with gradients is 'none'")
    ends = _ends(routing, problem)
    x_grad = w_grad = None
    if ctx.needs_input_grad[0]:
        of_rows = F.grouped_mm(grad.contiguous(), w, offs=ends)
        ones = grad.new_ones((ctx.tokens, problem.top_k), dtype=torch.float32)
        with_ones = Arrays(routing, problem).with_ones()
        x_grad = torch.ops.tandem.combine(of_rows, ones, with_ones, None, *problem.arguments())
    if ctx.needs_input_grad[1]:
        w_grad = F.grouped_mm(grad.contiguous().t(), rows, offs=ends)
    return (x_grad, w_grad, *(None for _ in range(4 + len(problem.arguments()))))


def _results_keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    a, w, weights, routing, add, _, *arguments = inputs
    ctx.save_for_backward(a, w, routing, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.tokens, ctx.adds, ctx.problem = weights.shape[0], add is not None, _problem_of(tuple(arguments))


def _results_gradient(ctx: Any, grad: torch.Tensor, _: Any) -> tuple[Any, ...]:
    (a, w, routing, y), problem = ctx.saved_tensors, ctx.problem
    of_y, of_weights = gradients_of_combination(grad, y, routing, problem, ctx.tokens, ctx.needs_input_grad[2])
    ends = _ends(routing, problem)
    a_grad = F.grouped_mm(of_y, w, offs=ends) if ctx.needs_input_grad[0] else None
    w_grad = F.grouped_mm(of_y.t(), a, offs=ends) if ctx.needs_input_grad[1] else None
    rest = (None for _ in range(1 + len(problem.arguments())))
    return (a_grad, w_grad, of_weights, None, grad if ctx.adds else None, *rest)


for _name, _schema, _kernel, _fake, _gradient, _keep in (
    (
        "dispatch_gemm",
        f"(Tensor x, Tensor w, Tensor routing, str activation, str form, bool clear, {PROBLEM}) -> (Tensor, Tensor)",
        _dispatch_gemm,
        _new_products,
        _products_gradient,
        _products_keep,
    ),
    (
        "gemm_combine",
        f"(Tensor a, Tensor w, Tensor weights, Tensor routing, Tensor? add, str form, {PROBLEM}) -> (Tensor, Tensor)",
        _gemm_combine,
        _new_results,
        _results_gradient,
        _results_keep,
    ),
):
    _operator = torch.library.custom_op(
        f"tandem::{_name}", _kernel, mutates_args=(), schema=_schema, device_types=("cpu", "cuda")
    )
    _operator.register_fake(_fake)
    _operator.register_autograd(_gradient, setup_context=_keep)


# The functions.


def _form(form: Any) -> str:
    name = text_argument("form", form)
    if name not in _c.EXPERT_FORMS:
        raise errors.InvalidArgument(f"form: '{name}' given, allowed is one of {', '.join(_c.EXPERT_FORMS)}")
    return name


def dispatch_gemm(
    x: torch.Tensor, routing: Routing, w: torch.Tensor, *, activation: str = "none", form: str = "rule"
) -> torch.Tensor:
    """Moves the rows of `x` to their experts, and multiplies them by the transposed matrices of `w`.

    `w` is experts here x columns x hidden, and `routing` has align=128. Rows of the result are those of `dispatch`.
    The gates and ups of "swiglu" and "geglu" alternate in groups of 8 rows of `w`, and the result has half of the
    columns. Gradients need the activation "none".
    """
    problem = routing_of(routing).problem
    _groups.check_tensor("x", x, TYPES)
    _groups.check_tensor("w", w, TYPES)
    clear = torch.is_grad_enabled()
    given = (text_argument("activation", activation), _form(form), clear)
    out, _ = torch.ops.tandem.dispatch_gemm(x, w, routing.memory, *given, *problem.arguments())
    return out


def gemm_combine(
    a: torch.Tensor, routing: Routing, w: torch.Tensor, add: torch.Tensor | None = None, *, form: str = "rule"
) -> torch.Tensor:
    """Multiplies rows by the transposed matrices of `w`, and adds each token's results, times their weights, and `add`.

    `w` is experts here x hidden x columns, and `a` has the rows of `dispatch_gemm`.
    """
    problem = routing_of(routing).problem
    _groups.check_tensor("a", a, TYPES)
    _groups.check_tensor("w", w, TYPES)
    if add is not None:
        _groups.check_tensor("add", add, TYPES)
    given = (routing.weights, routing.memory, add, _form(form))
    out, _ = torch.ops.tandem.gemm_combine(a, w, *given, *problem.arguments())
    return out
