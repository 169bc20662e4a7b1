"""Matrix products that overlap their collective, as operators of PyTorch.

    all_gather_matmul       gather(x) @ w of each of several weights, and gather(x); x holds this PE's rows
    matmul_reduce_scatter   this PE's rows of the sum of x @ w over all PEs
    matmul_all_reduce       the sum of x @ w over all PEs
    replicated_matmul       x @ w of an x that all PEs hold; the gradient of x is summed over all PEs

Weights are k x n, as torch.matmul has them: a contiguous one, or the transpose of a contiguous one. Leading axes of x
are rows, and the first of them is gathered or scattered. A bias is added once, and then the activation is applied.

In gradients the result of matmul_all_reduce counts as one that all PEs use alike, as tensor-parallel layers do. A bias
whose values are the same on all PEs gets its complete gradient on each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from .. import _c, errors
from .._c import ACTIVATIONS
from .._library import shown
from .._plan import OperatorPlan
from . import _groups, _native
from ._collectives import CODES, text_argument
from ._ops import call, call_directly, register
from ._scales import Scales

_TYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
# GPUs have no tensor cores for the first and no such operator; CPUs have all but float64.
_FUSED = {"cpu": (torch.float32, torch.bfloat16, torch.float16), "cuda": (torch.bfloat16, torch.float16)}
_ALIGNMENT = 16
_GATHER, _SCATTER = _c.OPERATORS["all_gather_gemm"], _c.OPERATORS["gemm_reduce_scatter"]
_REDUCE = _c.OPERATORS["gemm_all_reduce"]


def _checked(x: torch.Tensor, weights: Sequence[torch.Tensor], biases: Sequence[torch.Tensor], activation: str) -> None:
    _groups.check_tensor("x", x, _TYPES)
    if x.dim() < 2:
        raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed are two axes or more")
    if activation not in ACTIVATIONS:
        raise errors.InvalidArgument(
            f"activation: {shown(activation)} given, allowed is one of {', '.join(ACTIVATIONS)}"
        )
    if len(weights) == 0:
        raise errors.InvalidArgument("weight: an empty list given, allowed is at least one weight")
    if len(biases) not in (0, len(weights)):
        raise errors.InvalidArgument(f"bias: {len(biases)} given, allowed are none or {len(weights)}, as weights")
    for name, tensors, dims in (("weight", weights, 2), ("bias", biases, 1)):
        for one in tensors:
            _groups.check_tensor(name, one, _TYPES)
            _groups.check_like(name, one, x)
            if one.dim() != dims:
                raise errors.InvalidArgument(f"{name}: shape {tuple(one.shape)} given, allowed are {dims} axes")
    for one in weights:
        if one.shape[0] != x.shape[-1]:
            raise errors.InvalidArgument(
                f"weight: {one.shape[0]} rows given, allowed are {x.shape[-1]}, the columns of x"
            )
    for weight, bias in zip(weights, biases, strict=False):
        if bias.shape[0] != weight.shape[1]:
            raise errors.InvalidArgument(f"bias: {bias.shape[0]} elements given, allowed are {weight.shape[1]}")


def scattered_rows(x: torch.Tensor, group: str) -> int:
    """The first axis of this PE's part of x. Raises InvalidArgument where there is none."""
    pes = _groups.size_of(group)
    if x.shape[0] % pes != 0:
        raise errors.InvalidArgument(
            f"x: shape {tuple(x.shape)} given, allowed is a first axis that is a multiple of {pes} PEs"
        )
    return x.shape[0] // pes


def activated(z: torch.Tensor, activation: str) -> torch.Tensor:
    """The activation of z."""
    return z if activation == "none" else getattr(F, activation)(z)


def is_fused(x: torch.Tensor, weights: Sequence[torch.Tensor]) -> bool:
    """Whether an operator of the library takes these matrices. All PEs have the same shapes, so they answer alike."""
    size = x.element_size()
    lengths = [x.shape[-1], *(w.shape[1] for w in weights)]
    return (
        x.dtype in _FUSED[x.device.type]
        and x.numel() > 0
        and all(length > 0 and length * size % _ALIGNMENT == 0 for length in lengths)
    )


def _aligned(x: torch.Tensor) -> torch.Tensor:
    return x if x.data_ptr() % _ALIGNMENT == 0 else x.clone()


def _laid_out(weights: Sequence[torch.Tensor], only_n_x_k: bool) -> tuple[str, list[torch.Tensor]]:
    """The layout of all weights, and their memory in that layout."""
    if only_n_x_k or all(w.t().is_contiguous() for w in weights):
        return "NxK", [_aligned(w.t().contiguous()) for w in weights]
    return "KxN", [_aligned(w.contiguous()) for w in weights]


@dataclass(frozen=True)
class NormSteps:
    """A norm before a gather: fields of tandem_problem, and the tensors of a run by their fields of tandem_run."""

    options: dict[str, Any]
    tensors: dict[str, torch.Tensor | None]

    def laid_out(self) -> dict[str, torch.Tensor]:
        """The tensors as the library takes them."""
        given = {name: one for name, one in self.tensors.items() if one is not None}
        return {name: _aligned(one.contiguous()) for name, one in given.items()}


def _plan(found: _groups.GroupWorld, key: tuple[Any, ...], m: int, x: torch.Tensor) -> OperatorPlan:
    """A plan for `m` rows. One that is too small is replaced by one for a power of two."""
    operator, ns, k, options = key
    plan = found.plans.get(key)
    if plan is None or plan.m < m:
        with found.world._lock:
            if plan is not None:
                _groups.retire(plan, x)
                del found.plans[key]
            rows = max(16, 1 << (m - 1).bit_length())
            plan = found.plans[key] = OperatorPlan(found.world, operator, rows, list(ns), k, **dict(options))
            numbers = [value for _, value in options]
            if "norm" not in dict(options):  # kernels without Python have no norms
                _native.keep_plan(found, plan, [_c.OPERATORS[operator], *numbers, k, *ns])
    return plan


def run(
    operator: str,
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    activation: str,
    group: str,
    rows: tuple[int, int],
    gathered: torch.Tensor | None = None,
    scales: Scales | None = None,
    norm: NormSteps | None = None,
) -> list[torch.Tensor]:
    """Runs an operator. `rows` are those of the global problem, and those of this PE's result.

    The x of all PEs goes to `gathered`, where it is given.
    """
    found = _groups.world_for(group, x.device.type)
    pes = found.world.pes
    gathers = operator == "all_gather_gemm"
    layout, b = _laid_out(weights, scales is not None)
    a = _aligned(x.contiguous())
    bias = [_aligned(one.contiguous()) for one in biases]
    c = [x.new_empty((rows[1], w.shape[1]), dtype=x.dtype if scales is None else scales.dtype) for w in weights]
    ns = tuple(w.shape[1] * (pes if gathers else 1) for w in weights)
    k = x.shape[-1] * (1 if gathers else pes)
    options = (
        ("type", CODES[x.dtype]),
        ("b_layout", _c.LAYOUTS[layout]),
        ("activation", ACTIVATIONS[activation]),
        *(() if scales is None else scales.options().items()),
        *(() if norm is None else norm.options.items()),
    )
    plan = _plan(found, (operator, ns, k, options), rows[0], x)
    _groups.note_run(plan, x)
    matrices: dict[str, Any] = {"a": a.data_ptr(), "gathered": None if gathered is None else gathered.data_ptr()}
    for name, tensors in (("b", b), ("c", c), ("bias", bias)):
        matrices[name] = _c.addresses([one.data_ptr() for one in tensors])
    if scales is not None:
        kept = scales.laid_out()
        matrices["a_scale"] = kept[0].data_ptr()
        matrices["b_scale"] = _c.addresses([one.data_ptr() for one in kept[1:]])
    steps = {} if norm is None else norm.laid_out()
    matrices |= {name: one.data_ptr() for name, one in steps.items()}
    plan.run(rows[0], _groups.stream_of(x), **matrices)
    return c


def _all_gather_matmul(
    x: torch.Tensor,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    activation: str,
    keep_gathered: bool,
    group: str,
) -> list[torch.Tensor]:
    made = _native.products(_GATHER, x, weights, biases, ACTIVATIONS.get(activation), group, keep_gathered)
    if made is not None:
        return made
    _checked(x, weights, biases, activation)
    pes = _groups.size_of(group)
    shape = (pes * x.shape[0], *x.shape[1:-1])
    flat = x.reshape(-1, x.shape[-1]) if x.numel() > 0 else x.new_empty((0, x.shape[-1]))
    if is_fused(x, weights):
        m = pes * flat.shape[0]
        gathered = x.new_empty((m, x.shape[-1])) if keep_gathered else None
        results = run("all_gather_gemm", flat, weights, biases, activation, group, (m, m), gathered)
    else:
        gathered = torch.ops.tandem.all_gather(flat, group)
        sums = [gathered @ w for w in weights]
        results = (
            [activated(s + b, activation) for s, b in zip(sums, biases, strict=True)]
            if biases
            else [activated(s, activation) for s in sums]
        )
    shaped = [r.reshape(*shape, w.shape[1]) for r, w in zip(results, weights, strict=True)]
    if not keep_gathered or gathered is None:
        return shaped
    return [*shaped, gathered.reshape(*shape, x.shape[-1])]


def _sum(
    operator: str, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, activation: str, group: str, rows: int
) -> torch.Tensor:
    """The sum of x @ w over all PEs; of its rows this PE gets those whose first axis has `rows` elements."""
    shape = (rows, *x.shape[1:-1], w.shape[1])
    biases = [] if bias is None else [bias]
    flat = x.reshape(-1, x.shape[-1]) if x.numel() > 0 else x.new_empty((0, x.shape[-1]))
    own = flat.shape[0] * rows // x.shape[0] if x.shape[0] > 0 else 0
    if is_fused(x, [w]):
        result = run(operator, flat, [w], biases, activation, group, (flat.shape[0], own))[0]
        return result.reshape(shape)
    product = (x @ w).contiguous()
    if operator == "gemm_reduce_scatter":
        product = torch.ops.tandem.reduce_scatter(product, "sum", group)
    else:
        product = torch.ops.tandem.all_reduce(product, "sum", group)
    if bias is not None:
        product = product + bias
    result = activated(product, activation)
    return result


def _matmul_reduce_scatter(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, group: str
) -> torch.Tensor:
    biases = [] if bias is None else [bias]
    made = _native.products(_SCATTER, x, [weight], biases, ACTIVATIONS.get(activation), group)
    if made is not None:
        return made[0]
    _checked(x, [weight], biases, activation)
    return _sum("gemm_reduce_scatter", x, weight, bias, activation, group, scattered_rows(x, group))


def _matmul_all_reduce(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, group: str
) -> torch.Tensor:
    biases = [] if bias is None else [bias]
    made = _native.products(_REDUCE, x, [weight], biases, ACTIVATIONS.get(activation), group)
    if made is not None:
        return made[0]
    _checked(x, [weight], biases, activation)
    return _sum("gemm_all_reduce", x, weight, bias, activation, group, x.shape[0])


def _replicated_matmul(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, group: str
) -> torch.Tensor:
    _checked(x, [weight], [] if bias is None else [bias], activation)
    _groups.find(group)
    z = x @ weight if bias is None else x @ weight + bias
    return activated(z, activation).contiguous()


# Shapes.


def _all_gather_matmul_shape(
    x: torch.Tensor,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    activation: str,
    keep_gathered: bool,
    group: str,
) -> list[torch.Tensor]:
    _checked(x, weights, biases, activation)
    rows = _groups.size_of(group) * x.shape[0]
    columns = [*(w.shape[1] for w in weights), *([x.shape[-1]] if keep_gathered else [])]
    return [x.new_empty((rows, *x.shape[1:-1], one)) for one in columns]


def _matmul_reduce_scatter_shape(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, group: str
) -> torch.Tensor:
    _checked(x, [weight], [] if bias is None else [bias], activation)
    return x.new_empty((scattered_rows(x, group), *x.shape[1:-1], weight.shape[1]))


def _whole_shape(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, group: str
) -> torch.Tensor:
    _checked(x, [weight], [] if bias is None else [bias], activation)
    return x.new_empty((*x.shape[:-1], weight.shape[1]))


# Gradients. Activations other than relu need the sum before them: backward computes it again.


def before_activation(activation: str, grad: torch.Tensor, result: torch.Tensor, again: Any) -> torch.Tensor:
    """The gradient of the sum before the activation."""
    if activation == "none":
        return grad
    if activation == "relu":
        return grad * (result > 0)
    z = again()
    backward = torch.ops.aten.gelu_backward if activation == "gelu" else torch.ops.aten.silu_backward
    return backward(grad, z)


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, x.shape[-1])


def _all_gather_matmul_keep(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    x, weights, biases, ctx.activation, ctx.keeps, ctx.group = inputs
    ctx.count, ctx.biased = len(weights), len(biases) > 0
    kept = output[: ctx.count] if ctx.activation == "relu" else biases
    ctx.save_for_backward(output[-1] if ctx.keeps else x, *weights, *kept)
    ctx.set_materialize_grads(False)  # the gathered rows often have no gradient, which would be reduced


def _all_gather_matmul_gradient(ctx: Any, given: list[torch.Tensor | None]) -> tuple[Any, ...]:
    x, *rest = ctx.saved_tensors  # of all PEs, if they were kept
    weights, kept = rest[: ctx.count], rest[ctx.count :]
    gathered_grad = given[ctx.count] if ctx.keeps else None
    gathered = x if ctx.keeps else None

    def again() -> list[torch.Tensor]:
        if gathered is None:
            return torch.ops.tandem.all_gather_matmul(x, weights, kept, "none", False, ctx.group)
        return [gathered @ w + (kept[i] if ctx.biased else 0) for i, w in enumerate(weights)]

    leading = (x.shape[0] * (1 if ctx.keeps else _groups.size_of(ctx.group)), *x.shape[1:-1])
    grads = [x.new_zeros((*leading, w.shape[1])) if g is None else g for g, w in zip(given, weights, strict=False)]
    if ctx.activation in ("gelu", "silu"):
        sums = again()
        grads = [before_activation(ctx.activation, g, z, lambda z=z: z) for g, z in zip(grads, sums, strict=True)]
    elif ctx.activation == "relu":
        grads = [g * (y > 0) for g, y in zip(grads, kept, strict=True)]
    # One product with all weights side by side sums their gradients.
    whole = grads[0] if ctx.count == 1 else torch.cat(list(grads), -1)
    weight = weights[0] if ctx.count == 1 else torch.cat(list(weights), 1)
    x_grad = torch.ops.tandem.matmul_reduce_scatter(whole, weight.t(), None, "none", ctx.group)
    if gathered_grad is not None:
        x_grad = x_grad + torch.ops.tandem.reduce_scatter(gathered_grad, "sum", ctx.group)
    rows = torch.ops.tandem.all_gather(_rows(x), ctx.group) if gathered is None else _rows(gathered)
    weight_grads = [rows.t() @ _rows(g) for g in grads]
    bias_grads = [_rows(g).sum(0) for g in grads] if ctx.biased else []
    return x_grad, weight_grads, bias_grads, None, None, None


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, bias, ctx.activation, ctx.group = inputs
    ctx.save_for_backward(x, weight, bias, output if ctx.activation == "relu" else None)


def _matmul_reduce_scatter_gradient(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    x, weight, bias, result = ctx.saved_tensors
    grad = before_activation(
        ctx.activation,
        grad,
        result,
        lambda: torch.ops.tandem.matmul_reduce_scatter(x, weight, bias, "none", ctx.group),
    )
    x_grad, gathered = torch.ops.tandem.all_gather_matmul(grad, [weight.t()], [], "none", True, ctx.group)
    gathered = _rows(gathered)
    return x_grad, _rows(x).t() @ gathered, gathered.sum(0) if bias is not None else None, None, None


def _matmul_all_reduce_gradient(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    x, weight, bias, result = ctx.saved_tensors
    grad = before_activation(
        ctx.activation, grad, result, lambda: torch.ops.tandem.matmul_all_reduce(x, weight, bias, "none", ctx.group)
    )
    rows = _rows(grad)
    return grad @ weight.t(), _rows(x).t() @ rows, rows.sum(0) if bias is not None else None, None, None


def _replicated_matmul_gradient(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    x, weight, bias, result = ctx.saved_tensors
    grad = before_activation(
        ctx.activation, grad, result, lambda: torch.ops.tandem.replicated_matmul(x, weight, bias, "none", ctx.group)
    )
    rows = _rows(grad)
    x_grad = torch.ops.tandem.matmul_all_reduce(grad, weight.t(), None, "none", ctx.group)
    return x_grad, _rows(x).t() @ rows, rows.sum(0) if bias is not None else None, None, None


_ONE = "(Tensor x, Tensor weight, Tensor? bias, str activation, str group) -> Tensor"
for _name, _schema, _kernel, _fake, _gradient, _setup in (
    (
        "all_gather_matmul",
        "(Tensor x, Tensor[] weights, Tensor[] biases, str activation, bool keep_gathered, str group) -> Tensor[]",
        _all_gather_matmul,
        _all_gather_matmul_shape,
        _all_gather_matmul_gradient,
        _all_gather_matmul_keep,
    ),
    (
        "matmul_reduce_scatter",
        _ONE,
        _matmul_reduce_scatter,
        _matmul_reduce_scatter_shape,
        _matmul_reduce_scatter_gradient,
        _keep,
    ),
    ("matmul_all_reduce", _ONE, _matmul_all_reduce, _whole_shape, _matmul_all_reduce_gradient, _keep),
    ("replicated_matmul", _ONE, _replicated_matmul, _whole_shape, _replicated_matmul_gradient, _keep),
):
    register(_name, _schema, _kernel, _fake, _gradient, _setup)
    if _native.IS_LOADED and _name != "replicated_matmul":
        call_directly(getattr(torch.ops.tandem, _name), _kernel)


def _tensors(name: str, value: object) -> list[torch.Tensor]:
    made = list(value) if isinstance(value, (list, tuple)) else [value]
    for one in made:
        _groups.check_tensor(name, one, _TYPES)
    return made  # type: ignore[return-value]


def all_gather_matmul(
    x: torch.Tensor,
    weight: Any,
    bias: Any = None,
    activation: str = "none",
    group: Any = None,
    *,
    return_gathered: bool = False,
) -> Any:
    """gather(x) @ weight + bias, activated. A list of weights gives a list of results from one gather.

    With `return_gathered` the result is a pair of this and gather(x), which backward then uses.
    """
    biases = [] if bias is None else _tensors("bias", bias)
    results = call(
        torch.ops.tandem.all_gather_matmul,
        _tensors("x", x)[0],
        _tensors("weight", weight),
        biases,
        text_argument("activation", activation),
        bool(return_gathered),
        _groups.resolve(group),
    )
    products = results[: len(results) - bool(return_gathered)] if isinstance(weight, (list, tuple)) else results[0]
    return (products, results[-1]) if return_gathered else products


def _one(operator: Any, x: Any, weight: Any, bias: Any, activation: str, group: Any) -> torch.Tensor:
    _groups.check_tensor("x", x, _TYPES)
    _groups.check_tensor("weight", weight, _TYPES)
    if bias is not None:
        _groups.check_tensor("bias", bias, _TYPES)
    return call(operator, x, weight, bias, text_argument("activation", activation), _groups.resolve(group))


def matmul_reduce_scatter(
    x: torch.Tensor, weight: torch.Tensor, bias: Any = None, activation: str = "none", group: Any = None
) -> torch.Tensor:
    """This PE's rows of the sum of x @ weight over all PEs, with bias and activation."""
    return _one(torch.ops.tandem.matmul_reduce_scatter, x, weight, bias, activation, group)


def matmul_all_reduce(
    x: torch.Tensor, weight: torch.Tensor, bias: Any = None, activation: str = "none", group: Any = None
) -> torch.Tensor:
    """The sum of x @ weight over all PEs, with bias and activation."""
    return _one(torch.ops.tandem.matmul_all_reduce, x, weight, bias, activation, group)


def replicated_matmul(
    x: torch.Tensor, weight: torch.Tensor, bias: Any = None, activation: str = "none", group: Any = None
) -> torch.Tensor:
    """x @ weight + bias of an x that all PEs hold. The gradient of x is the sum over all PEs."""
    return _one(torch.ops.tandem.replicated_matmul, x, weight, bias, activation, group)
