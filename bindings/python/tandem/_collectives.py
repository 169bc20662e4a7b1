"""Collectives on a simulated machine: shapes, types and the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import errors
from ._arrays import as_array, empty, memory_of, type_name
from ._library import call, shown, text_option
from ._options import default_machine, options_of, size_option
from ._results import CollectiveResult

if TYPE_CHECKING:
    import numpy

    Arrays = numpy.ndarray | Sequence[Any]

_CUT = {"reduce_scatter", "all_to_all", "scatter"}  # the first axis of the input is cut into one part per PE
_JOINED = {"all_gather", "gather"}  # the first axis of the output has all PEs' parts
_FROM_ROOT = {"broadcast", "scatter"}
_TO_ROOT = {"reduce", "gather"}


def run_collective(
    collective: str, /, *, arrays: object, bytes: object, op: object = None, **arguments: Any
) -> CollectiveResult:
    """Runs `collective` once. The others are arguments of functions in simulate.py, None where they were left out."""
    if (arrays is None) == (bytes is None):
        given = "neither" if arrays is None else "both"
        raise errors.InvalidArgument(f"arrays, bytes: {given} given, allowed is one of them")
    request: dict[str, Any] = {"call": "run", "op": collective, **options_of(arguments | {"reduction": op})}
    if arrays is None:
        request["bytes"] = text_option("bytes", size_option("bytes", bytes))
        request.setdefault("machine", default_machine(request.get("pes")))
        return CollectiveResult(request, call(request))
    return _run_with_data(collective, arrays, request)


def _run_with_data(op: str, arrays: object, request: dict[str, Any]) -> CollectiveResult:
    root = request.get("root", 0)
    inputs, like = _inputs(op, arrays, root)
    pes = len(inputs)
    if request.setdefault("pes", pes) != pes:
        raise errors.InvalidArgument(f"pes: {request['pes']} given, allowed is {pes}, the number of arrays")
    if op in _CUT and (like.ndim == 0 or like.shape[0] % pes != 0):
        raise errors.InvalidArgument(
            f"arrays: shape {like.shape} given, allowed for {op} is a first axis that is a multiple of {pes}"
        )
    request.setdefault("machine", default_machine(pes))
    request["dtype"] = type_name("arrays", like, request.get("dtype"))
    request["count"] = like.size // pes if op in _CUT else like.size
    outputs = [
        empty(_output_shape(op, like.shape, pes), like.dtype) if op not in _TO_ROOT or pe == root else None
        for pe in range(pes)
    ]
    answer = call(request, [memory_of(one) for one in inputs], [memory_of(one) for one in outputs])
    result = CollectiveResult(request, answer)
    result.results = outputs
    return result


def _inputs(op: str, arrays: object, root: int) -> tuple[list[numpy.ndarray | None], numpy.ndarray]:
    """One array per PE, None where a PE gives nothing, and the one whose shape and type all have."""
    per_pe = _split(arrays)
    if op in _FROM_ROOT:
        if not 0 <= root < len(per_pe):
            raise errors.InvalidArgument(f"root: {root} given, allowed is 0 to {len(per_pe) - 1}")
        per_pe = [one if pe == root else None for pe, one in enumerate(per_pe)]
    inputs: list[numpy.ndarray | None] = []
    like: numpy.ndarray | None = None
    for pe, one in enumerate(per_pe):
        if one is None and op in _FROM_ROOT and pe != root:
            inputs.append(None)
            continue
        if one is None:
            raise errors.InvalidType(f"arrays[{pe}]: None given, allowed is an array")
        array = as_array(f"arrays[{pe}]", one)
        like = array if like is None else like
        if array.shape != like.shape or array.dtype != like.dtype:
            raise errors.InvalidArgument(
                f"arrays[{pe}]: {array.dtype.name} of shape {array.shape} given, allowed is what the first one is: "
                f"{like.dtype.name} of shape {like.shape}"
            )
        inputs.append(array)
    assert like is not None  # there is at least one PE, and the root gives an array
    return inputs, like


def _split(arrays: object) -> list[Any]:
    shape = getattr(arrays, "shape", None)
    if shape is not None:  # one array whose first axis is the PE
        if len(shape) < 2:
            raise errors.InvalidArgument(
                f"arrays: one array of shape {tuple(shape)} given, allowed is a list with one array per PE, or an "
                "array of at least two axes whose first one is the PE"
            )
        per_pe = list(as_array("arrays", arrays))
    elif isinstance(arrays, (list, tuple)):
        per_pe = list(arrays)
    else:
        raise errors.InvalidType(f"arrays: {shown(arrays)} given, allowed is a list of arrays or one numpy array")
    if not per_pe:
        raise errors.InvalidArgument("arrays: none given, allowed is one for each PE")
    return per_pe


def _output_shape(op: str, shape: tuple[int, ...], pes: int) -> tuple[int, ...]:
    if op in _JOINED:
        return (pes * shape[0], *shape[1:]) if shape else (pes,)
    if op in {"reduce_scatter", "scatter"}:
        return (shape[0] // pes, *shape[1:])
    return shape
