"""Products of a layer with experts that overlap the travel of rows.

    routing = tt.route(ids, weights, experts=256, hidden=7168, align=128)
    h = tt.dispatch_gemm(x, routing, gate_up)       rows of this PE's experts times their first matrices
    out = tt.gemm_combine(f(h), routing, down)      the weighted sum of each token's second products

With a routing of the wire "quantised" or "given" both products are fp8. There is a scale for each 128 values of a row
and for each 128x128 weights:

    routing = tt.route(ids, weights, experts=256, hidden=7168, align=128, wire="quantised")
    h, scales = tt.dispatch_gemm(x, routing, gate_up, w_scales=of_gate_up, activation="swiglu")
    out = tt.gemm_combine(h, routing, down, a_scales=scales, w_scales=of_down)

docs/reference/experts.md has the forms. `rule` takes the tuned one, else the sequential one.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import _c, errors
from .._library import shown
from .._plan import ExpertGemmsPlan
from . import _groups
from ._collectives import text_argument
from ._expert_gradients import gradient_of_products, gradient_of_results, keep_products, keep_results
from ._experts import FP8, PROBLEM, Routing, check_routing, check_rows, check_shape, routing_of
from ._routing import TYPES, Problem, problem_of

TILE = 128  # rows of a tile, to which each expert's rows are aligned
_ACTIVATIONS = {**_c.ACTIVATIONS, **_c.GATED}


def _problem_of(arguments: tuple[Any, ...]) -> Problem:
    problem = problem_of(arguments)
    for name, allowed in (("layout", "sorted"), ("align", TILE)):
        if getattr(problem, name) != allowed:
            raise errors.InvalidArgument(
                f"{name}: {shown(getattr(problem, name))} given to products of experts, allowed is {shown(allowed)}"
            )
    if _is_fp8(problem) and problem.dtype != torch.bfloat16:
        raise errors.InvalidType(f"dtype: {problem.dtype} given to products in fp8, allowed is torch.bfloat16")
    return problem


def _is_fp8(problem: Problem) -> bool:
    return problem.wire != "type"


def _blocks(count: int) -> int:
    return -(-count // TILE)


def _plan(
    problem: Problem, device: str, intermediate: int, activation: str | None, dispatch_form: str, combine_form: str
) -> ExpertGemmsPlan:
    """The plan, which the group's processes make together. Without an activation any of them serves."""
    key = (problem, intermediate, activation, dispatch_form, combine_form)
    found = _groups.world_for(problem.group, device)
    if key not in found.plans:
        fields = problem.fields()
        if activation is None:  # GPUs have no fp8 plan without a gated one
            activation = "swiglu" if _is_fp8(problem) and device == "cuda" else "none"
        found.plans[key] = ExpertGemmsPlan(
            found.world,
            max_tokens=problem.max_tokens,
            hidden=problem.hidden,
            intermediate=intermediate,
            experts=problem.experts,
            top_k=problem.top_k,
            type=fields["type"],
            wire=fields["wire"],
            tp_size=problem.tp_size,
            activation=_ACTIVATIONS[activation],
            dispatch_gemm=_c.EXPERT_FORMS[dispatch_form],
            gemm_combine=_c.EXPERT_FORMS[combine_form],
        )
        for one in (activation, None):
            found.plans.setdefault((problem, intermediate, one, dispatch_form, combine_form), found.plans[key])
    return found.plans[key]


def _check_weights(w: torch.Tensor, shape: tuple[int, int, int], problem: Problem) -> None:
    _groups.check_tensor("w", w, (FP8,) if _is_fp8(problem) else (problem.dtype,))
    if tuple(w.shape) != shape:
        raise errors.InvalidArgument(f"w: shape {tuple(w.shape)} given, allowed is {shape}")


def _check_scales(
    name: str, scales: torch.Tensor | None, shape: tuple[int, ...], wires: tuple[str, ...], problem: Problem, like: Any
) -> None:
    """Raises where scales are missing with one of the wires, and where they are given with another one."""
    if (scales is not None) != (problem.wire in wires):
        allowed = " or ".join(f"'{wire}'" for wire in wires)
        if scales is None:
            raise errors.InvalidType(f"{name}: None given, allowed is a tensor, because the wire is '{problem.wire}'")
        raise errors.InvalidArgument(
            f"{name}: a tensor given, allowed with wire '{problem.wire}' is None, and with {allowed} a tensor"
        )
    if scales is not None:
        _groups.check_tensor(name, scales, (torch.float32,))
        check_shape(name, scales, shape, like)


_FP8_WIRES = ("quantised", "given")


def _columns(w: torch.Tensor, activation: str) -> int:
    if activation not in _ACTIVATIONS:
        raise errors.InvalidArgument(
            f"activation: {shown(activation)} given, allowed is one of {', '.join(_ACTIVATIONS)}"
        )
    if w.dim() != 3:
        raise errors.InvalidArgument(f"w: shape {tuple(w.shape)} given, allowed are three dimensions")
    return int(w.shape[1]) // (2 if activation in _c.GATED else 1)


def _contiguous(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    return [None if one is None else one.contiguous() for one in tensors]


def _address(x: torch.Tensor | None) -> int | None:
    return None if x is None else x.data_ptr() or None


# Rows to experts, and the first product.


def _new_products(
    x: torch.Tensor,
    w: torch.Tensor,
    routing: torch.Tensor,
    x_scales: torch.Tensor | None,
    w_scales: torch.Tensor | None,
    activation: str,
    form: str,
    clear: bool,
    *arguments: Any,
) -> tuple[torch.Tensor, ...]:
    """The results, the dispatched rows, and the scales of both, which have no elements without fp8."""
    problem = _problem_of(arguments)
    _groups.check_tensor("x", x, (FP8,) if problem.wire == "given" else (problem.dtype,))
    check_rows("x", x, problem)
    check_routing(routing, problem, x)
    intermediate, is_gated = _columns(w, activation), activation in _c.GATED
    here = problem.experts_here()
    _check_weights(w, (here, w.shape[1], problem.hidden), problem)
    steps = _blocks(problem.hidden)
    _check_scales("x_scales", x_scales, (x.shape[0], steps), ("given",), problem, x)
    blocks = 2 * _blocks(intermediate) if is_gated else _blocks(intermediate)
    _check_scales("w_scales", w_scales, (here, blocks, steps), _FP8_WIRES, problem, x)
    if form == "overlapped" and _is_fp8(problem):
        raise errors.InvalidArgument(f"form: '{form}' given to dispatch_gemm in fp8, allowed is 'sequential'")
    new = x.new_zeros if clear else x.new_empty
    rows, dtype = problem.sizes().rows, FP8 if _is_fp8(problem) else problem.dtype
    counts = (_blocks(intermediate), steps) if _is_fp8(problem) else (0, 0)
    return (
        new((rows, intermediate), dtype=dtype),
        new((rows, problem.hidden), dtype=dtype),
        *(new((rows, count), dtype=torch.float32) for count in counts),
    )


def _dispatch_gemm(
    x: torch.Tensor,
    w: torch.Tensor,
    routing: torch.Tensor,
    x_scales: torch.Tensor | None,
    w_scales: torch.Tensor | None,
    activation: str,
    form: str,
    clear: bool,
    *arguments: Any,
) -> tuple[torch.Tensor, ...]:
    made = _new_products(x, w, routing, x_scales, w_scales, activation, form, clear, *arguments)
    out, rows, out_scales, row_scales = made
    x, w, x_scales, w_scales = _contiguous(x, w, x_scales, w_scales)
    problem = _problem_of(arguments)
    combine_form = "sequential" if _is_fp8(problem) else form
    _plan(problem, x.device.type, out.shape[1], activation, form, combine_form).dispatch(
        _groups.stream_of(x),
        tokens=x.shape[0],
        x=x.data_ptr(),
        routing=routing.data_ptr(),
        b=w.data_ptr(),
        rows=rows.data_ptr(),
        out=out.data_ptr(),
        x_scales=_address(x_scales),
        b_scales=_address(w_scales),
        row_scales=_address(row_scales),
        out_scales=_address(out_scales),
    )
    return made


# The second product, and results to tokens.


def _new_results(
    a: torch.Tensor,
    w: torch.Tensor,
    weights: torch.Tensor,
    routing: torch.Tensor,
    add: torch.Tensor | None,
    a_scales: torch.Tensor | None,
    w_scales: torch.Tensor | None,
    form: str,
    *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    problem = _problem_of(arguments)
    _groups.check_tensor("a", a, (FP8,) if _is_fp8(problem) else (problem.dtype,))
    if a.dim() != 2:
        raise errors.InvalidArgument(f"a: shape {tuple(a.shape)} given, allowed are two dimensions")
    rows, here = problem.sizes().rows, problem.experts_here()
    check_shape("a", a, (rows, a.shape[1]), routing)
    check_routing(routing, problem, a)
    _check_weights(w, (here, problem.hidden, a.shape[1]), problem)
    steps = _blocks(a.shape[1])
    _check_scales("a_scales", a_scales, (rows, steps), _FP8_WIRES, problem, a)
    _check_scales("w_scales", w_scales, (here, _blocks(problem.hidden), steps), _FP8_WIRES, problem, a)
    out = a.new_empty((weights.shape[0], problem.hidden), dtype=problem.dtype)
    check_rows("weights", out, problem)
    if add is not None:
        _groups.check_tensor("add", add, (problem.dtype,))
        check_shape("add", add, tuple(out.shape), a)
    return out, a.new_empty((rows, problem.hidden), dtype=problem.dtype)


def _gemm_combine(
    a: torch.Tensor,
    w: torch.Tensor,
    weights: torch.Tensor,
    routing: torch.Tensor,
    add: torch.Tensor | None,
    a_scales: torch.Tensor | None,
    w_scales: torch.Tensor | None,
    form: str,
    *arguments: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    out, y = _new_results(a, w, weights, routing, add, a_scales, w_scales, form, *arguments)
    a, w, add, a_scales, w_scales = _contiguous(a, w, add, a_scales, w_scales)
    problem = _problem_of(arguments)
    dispatch_form = "sequential" if _is_fp8(problem) else form
    _plan(problem, a.device.type, a.shape[1], None, dispatch_form, form).combine(
        _groups.stream_of(a),
        tokens=out.shape[0],
        a=a.data_ptr(),
        routing=routing.data_ptr(),
        b=w.data_ptr(),
        y=y.data_ptr(),
        add=_address(add),
        out=out.data_ptr(),
        a_scales=_address(a_scales),
        b_scales=_address(w_scales),
    )
    return out, y


for _name, _schema, _kernel, _fake, _gradient, _keep in (
    (
        "dispatch_gemm",
        "(Tensor x, Tensor w, Tensor routing, Tensor? x_scales, Tensor? w_scales, str activation, str form, "
        f"bool clear, {PROBLEM}) -> (Tensor, Tensor, Tensor, Tensor)",
        _dispatch_gemm,
        _new_products,
        gradient_of_products,
        keep_products,
    ),
    (
        "gemm_combine",
        "(Tensor a, Tensor w, Tensor weights, Tensor routing, Tensor? add, Tensor? a_scales, Tensor? w_scales, "
        f"str form, {PROBLEM}) -> (Tensor, Tensor)",
        _gemm_combine,
        _new_results,
        gradient_of_results,
        keep_results,
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


def _check_given(**tensors: torch.Tensor | None) -> None:
    for name, given in tensors.items():
        if name.endswith("_scales"):
            if given is not None:
                _groups.check_tensor(name, given, (torch.float32,))
        else:
            _groups.check_tensor(name, given, (*TYPES, FP8))


def dispatch_gemm(
    x: torch.Tensor,
    routing: Routing,
    w: torch.Tensor,
    *,
    x_scales: torch.Tensor | None = None,
    w_scales: torch.Tensor | None = None,
    activation: str = "none",
    form: str = "rule",
) -> Any:
    """Moves the rows of `x` to their experts, and multiplies them by the transposed matrices of `w`.

    `w` is experts here x columns x hidden, and `routing` has align=128. Rows of the result are those of `dispatch`.
    For the activations "swiglu" and "geglu" the rows of `w` are those of `interleave_gates`, and the result has half of
    the columns. Backward multiplies again for activations other than "none" and "relu", which keep no sums.

    With the wire "quantised" or "given" of `routing`, `w` is float8_e4m3fn, and `w_scales` has experts here x blocks of
    128 columns x blocks of 128 of hidden. The blocks of gates and those of ups are counted apart, and follow each other
    in turns. The result is then a pair: rows in fp8, and their scales, one for each 128 columns. GPUs need a gated
    activation. There are no gradients in fp8.
    """
    problem = routing_of(routing).problem
    _check_given(x=x, w=w, x_scales=x_scales, w_scales=w_scales)
    clear = torch.is_grad_enabled()
    given = (x_scales, w_scales, text_argument("activation", activation), _form(form), clear)
    out, _, scales, _ = torch.ops.tandem.dispatch_gemm(x, w, routing.memory, *given, *problem.arguments())
    return (out, scales) if _is_fp8(problem) else out


def gemm_combine(
    a: torch.Tensor,
    routing: Routing,
    w: torch.Tensor,
    add: torch.Tensor | None = None,
    *,
    a_scales: torch.Tensor | None = None,
    w_scales: torch.Tensor | None = None,
    form: str = "rule",
) -> torch.Tensor:
    """Multiplies rows by the transposed matrices of `w`, and adds each token's results, times their weights, and `add`.

    `w` is experts here x hidden x columns, and `a` has the rows of `dispatch_gemm`. In fp8, `a_scales` are those of
    `dispatch_gemm`, and `w_scales` has experts here x blocks of 128 of hidden x blocks of 128 columns.
    """
    problem = routing_of(routing).problem
    _check_given(a=a, w=w, a_scales=a_scales, w_scales=w_scales)
    if add is not None:
        _groups.check_tensor("add", add, TYPES)
    given = (routing.weights, routing.memory, add, a_scales, w_scales, _form(form))
    out, _ = torch.ops.tandem.gemm_combine(a, w, *given, *problem.arguments())
    return out
