"""The exchange of heads around attention, as operators of PyTorch.

    merge_heads       partial outputs of all heads, one from each PE's part of the keys, to complete outputs
    exchange_heads    own rows of all heads to all rows of own heads (Ulysses), and back
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import errors
from .._c import TYPES as CODES
from .._plan import ExchangePlan, HeadsPlan
from . import _groups
from ._collectives import TYPES
from ._ops import call, register

_MERGED = (torch.float32, torch.float16, torch.bfloat16)
_LEAST = 16  # batch or rows of a plan
_MOST_TENSORS = 8


def _rounded(count: int) -> int:
    return max(_LEAST, 1 << (count - 1).bit_length())


# merge_heads


def _merged(partial: torch.Tensor, lse: torch.Tensor, base_two: bool, all_heads: bool, group: str) -> torch.Tensor:
    """A new tensor for the result."""
    _groups.check_tensor("partial", partial, _MERGED)
    _groups.check_tensor("lse", lse, (torch.float32,))
    if partial.dim() != 3 or 0 in partial.shape[1:]:
        raise errors.InvalidArgument(
            f"partial: shape {tuple(partial.shape)} given, allowed is batch x heads x elements of a head"
        )
    if tuple(lse.shape) != tuple(partial.shape[:2]) or lse.device != partial.device:
        raise errors.InvalidArgument(
            f"lse: shape {tuple(lse.shape)} on {lse.device} given, allowed is {tuple(partial.shape[:2])} on "
            f"{partial.device}"
        )
    batch, heads, size = partial.shape
    if not all_heads:
        step = -(-heads // _groups.size_of(group))
        heads = max(0, min(step, heads - step * _groups.rank_in(group)))
    return partial.new_empty((batch, heads, size))


def _merge_heads(partial: torch.Tensor, lse: torch.Tensor, base_two: bool, all_heads: bool, group: str) -> torch.Tensor:
    out = _merged(partial, lse, base_two, all_heads, group)
    found = _groups.world_for(group, partial.device.type)
    batch, heads, size = partial.shape
    if batch == 0:
        return out
    problem = {
        "max_batch": _rounded(batch),
        "heads": heads,
        "head_size": size,
        "type": CODES[str(partial.dtype).removeprefix("torch.")],
        "base_two": int(base_two),
        "all_heads": int(all_heads),
    }
    key = ("merge_heads", *problem.values())
    if key not in found.plans:
        found.plans[key] = HeadsPlan(found.world, **problem)
    partial, lse = partial.contiguous(), lse.contiguous()
    addresses = {"partial": partial.data_ptr(), "lse": lse.data_ptr(), "out": out.data_ptr() or None}
    found.plans[key].run(_groups.stream_of(partial), batch=batch, **addresses)
    return out


register(
    "merge_heads",
    "(Tensor partial, Tensor lse, bool base_two, bool all_heads, str group) -> Tensor",
    _merge_heads,
    _merged,
)


def merge_heads(
    partial: torch.Tensor, lse: torch.Tensor, *, base_two: bool = False, all_heads: bool = False, group: Any = None
) -> torch.Tensor:
    """Complete attention outputs of this PE's heads from every PE's partial outputs of all heads.

    `partial` is batch x heads x elements of a head, and `lse` holds the log-sum-exps of batch x heads, with base e or
    two. This PE's heads are `torch.chunk`'s part, or all with `all_heads`. It has no gradient.
    """
    _groups.check_tensor("partial", partial, _MERGED)
    _groups.check_tensor("lse", lse, (torch.float32,))
    return call(torch.ops.tandem.merge_heads, partial, lse, bool(base_two), bool(all_heads), _groups.resolve(group))


# exchange_heads


def _exchanged(tensors: list[torch.Tensor], to_rows: bool, group: str) -> list[torch.Tensor]:
    """New tensors for the results."""
    pes = _groups.size_of(group)
    if len(tensors) > _MOST_TENSORS:
        raise errors.InvalidArgument(f"tensors: {len(tensors)} given, allowed are 1 to {_MOST_TENSORS}")
    first = tensors[0]
    for x in tensors:
        _groups.check_tensor("tensors", x, TYPES)
        _groups.check_like("tensors", x, first, "the first")
        if x.dim() < 2 or 0 in x.shape[1:] or x.shape[0] != first.shape[0] or x.shape[0 if to_rows else 1] % pes != 0:
            axis = "rows" if to_rows else "heads"
            raise errors.InvalidArgument(
                f"tensors: shape {tuple(x.shape)} given, allowed is rows x heads x ..., with {first.shape[0]} rows and "
                f"{axis} that are a multiple of {pes} PEs"
            )
    if to_rows:
        return [x.new_empty((x.shape[0] // pes, x.shape[1] * pes, *x.shape[2:])) for x in tensors]
    return [x.new_empty((x.shape[0] * pes, x.shape[1] // pes, *x.shape[2:])) for x in tensors]


def _wait_for_copies(plan: ExchangePlan, device: torch.device) -> None:
    """Lets the current stream wait until the previous call's results are copied, which may be in another stream.

    A captured call waits for nothing outside its graph.
    """
    if plan.copied is not None and not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream(device).wait_event(plan.copied)


def _exchange_heads(tensors: list[torch.Tensor], to_rows: bool, group: str) -> list[torch.Tensor]:
    results = _exchanged(tensors, to_rows, group)
    first = tensors[0]
    found = _groups.world_for(group, first.device.type)
    pes = found.world.pes
    rows = first.shape[0] // pes if to_rows else first.shape[0]
    if rows == 0:
        return results
    segments = tuple(math.prod(x.shape[1:]) // (1 if to_rows else pes) for x in tensors)
    dtype = str(first.dtype).removeprefix("torch.")
    key = ("exchange_heads", segments, dtype, to_rows)
    plan = found.plans.get(key)
    if plan is None or plan.max_rows < rows:
        if plan is not None:
            del found.plans[key]
            _groups.retire(plan, first)
        plan = found.plans[key] = ExchangePlan(found.world, _rounded(rows), segments, dtype, to_rows)
    _groups.note_run(plan, first)
    given = [x.contiguous() for x in tensors]
    _wait_for_copies(plan, first.device)
    plan.exchange(rows, [x.data_ptr() for x in given], _groups.stream_of(first))
    for result, memory in zip(results, plan.results, strict=True):
        result.view(-1).copy_(memory.local.torch()[: result.numel()])
    if first.device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
        plan.copied = torch.cuda.current_stream(first.device).record_event()
    return results


def _exchange_heads_keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, ctx.to_rows, ctx.group = inputs


def _exchange_heads_gradient(ctx: Any, grads: list[torch.Tensor]) -> tuple[Any, ...]:
    return torch.ops.tandem.exchange_heads(list(grads), not ctx.to_rows, ctx.group), None, None


register(
    "exchange_heads",
    "(Tensor[] tensors, bool to_rows, str group) -> Tensor[]",
    _exchange_heads,
    _exchanged,
    _exchange_heads_gradient,
    _exchange_heads_keep,
)


def exchange_heads(*tensors: torch.Tensor, to_rows: bool = False, group: Any = None) -> Any:
    """Exchanges own rows of all heads for all rows of own heads, or the reverse with `to_rows`.

    A tensor is rows x heads x elements of a head. Several tensors with the same rows, such as q, k and v, travel in one
    call, which returns a list. One tensor returns one.
    """
    if len(tensors) == 0:
        raise errors.InvalidArgument(f"tensors: none given, allowed are 1 to {_MOST_TENSORS}")
    for x in tensors:
        _groups.check_tensor("tensors", x, TYPES)
    results = call(torch.ops.tandem.exchange_heads, list(tensors), bool(to_rows), _groups.resolve(group))
    return results[0] if len(tensors) == 1 else results
