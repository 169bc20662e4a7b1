"""Operators on a simulated machine: shapes, types and the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._arrays import as_array, empty, memory_of, numpy_module, result_dtype, type_name
from ._library import call, whole_option
from ._options import default_machine, options_of
from ._results import OperatorResult

if TYPE_CHECKING:
    import numpy

_Sizes = tuple[Any, Any, Any]


def run_operator(
    operator: str, /, *, m: object, n: object, k: object, a: object, b: object, **arguments: Any
) -> OperatorResult:
    """Runs `operator` once. The others are arguments of functions in simulate.py, None where they were left out."""
    sizes = (m, n, k)
    request: dict[str, Any] = {"call": "run", "op": operator, **options_of(arguments)}
    request.setdefault("machine", default_machine(request.get("pes")))
    if (a is None) != (b is None):
        raise errors.InvalidArgument(f"a, b: {'b' if a is None else 'a'} alone given, allowed are both or neither")
    if a is not None:
        return _run_with_data(request, sizes, a, b)
    _set_shape(request, sizes)
    return OperatorResult(request, call(request))


def _set_shape(request: dict[str, Any], sizes: _Sizes) -> None:
    m, n, k = (None if size is None else whole_option(name, size) for name, size in zip("mnk", sizes, strict=True))
    if "model" in request:
        if n is not None or k is not None:
            raise errors.InvalidArgument("n, k: given with model, allowed is one of the two (m sets the rows)")
        if m is not None:
            request["m"] = m
        return
    missing = [name for name, size in zip("mnk", (m, n, k), strict=True) if size is None]
    if missing:
        raise errors.InvalidArgument(f"{', '.join(missing)}: not given, allowed are m, n and k, or model, or a and b")
    request["shape"] = f"{m}x{n}x{k}"


def _matrix(name: str, value: object) -> numpy.ndarray:
    array = as_array(name, value)
    if array.ndim != 2:
        raise errors.InvalidArgument(f"{name}: shape {array.shape} given, allowed is a matrix")
    return array


def _run_with_data(request: dict[str, Any], sizes: _Sizes, a: object, b: object) -> OperatorResult:
    if any(size is not None for size in sizes) or "model" in request:
        raise errors.InvalidArgument("a, b: given with m, n, k or model, allowed is one of them")
    left, right = _matrix("a", a), _matrix("b", b)
    by_columns = request.get("b_layout") == "KxN"
    (m, k), (n, depth) = left.shape, right.shape[::-1] if by_columns else right.shape
    if depth != k or left.dtype != right.dtype:
        raise errors.InvalidArgument(
            f"b: {right.dtype.name} of shape {right.shape} given, allowed with a of {left.dtype.name} {left.shape} is "
            f"{left.dtype.name} of {'k x n' if by_columns else 'n x k'} with k = {k}"
        )
    request["dtype"] = type_name("a", left, request.get("dtype"))
    request["shape"] = f"{m}x{n}x{k}"
    pes, op = call({**request, "call": "pes"})["pes"], request["op"]
    out_type = request.get("out_dtype") or ("bf16" if request["dtype"].startswith("fp8") else request["dtype"])
    results = [empty(_shard_shape(op, m, n, pes, pe), result_dtype(out_type, left.dtype)) for pe in range(pes)]
    answer = call(request, [memory_of(left), memory_of(right)], [memory_of(one) for one in results])
    result = OperatorResult(request, answer)
    result.results = list(results)
    if op == "gemm_all_reduce":
        result.c = results[0]
    else:
        result.c = numpy_module().concatenate(results, axis=1 if op == "all_gather_gemm" else 0)
    return result


def _shard_shape(op: str, m: int, n: int, pes: int, pe: int) -> tuple[int, int]:
    if op == "gemm_all_reduce":
        return m, n
    return (m, _part(n, pes, pe)) if op == "all_gather_gemm" else (_part(m, pes, pe), n)


def _part(whole: int, pes: int, pe: int) -> int:
    """The size of part `pe` of equal parts, the last ones shorter: tandem::split."""
    each = -(-whole // pes)
    return max(0, min(whole, (pe + 1) * each) - min(whole, pe * each))
