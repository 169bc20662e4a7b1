"""Dispatch and combine with rows of each expert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ... import errors
from ..._library import shown
from .. import _experts, _groups
from .._route_and_dispatch import route_and_dispatch


class Handle:
    """The result of a low-latency dispatch, for its combine. As a tuple it has the five entries of DeepEP's."""

    def __init__(self, routing: _experts.Routing) -> None:
        self.routing = routing

    def __iter__(self) -> Iterator[Any]:
        problem = self.routing.problem
        return iter((*self._sources(), problem.max_tokens, problem.hidden, problem.experts))

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        return tuple(self)[index]

    def _sources(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The token of each row, and for each expert and rank the first row and the number of rows."""
        arrays = self.routing.arrays
        problem, ranks = self.routing.problem, arrays.pes
        here = problem.experts // ranks
        slots = self.routing.slots.view(here, -1)
        is_used = torch.arange(slots.shape[1], device=slots.device) < self.routing.counts.unsqueeze(1)
        rank = torch.where(is_used, slots // problem.max_tokens, ranks).to(torch.int64)
        counts = torch.zeros((here, ranks + 1), dtype=torch.int64, device=slots.device)
        counts.scatter_add_(1, rank, torch.ones_like(rank))
        order = [(_groups.rank_in(problem.group) + i) % ranks for i in range(ranks)]
        begins = torch.zeros_like(counts)
        begins[:, order] = counts[:, order].cumsum(1) - counts[:, order]
        return slots % problem.max_tokens, (begins << 32 | counts)[:, :ranks]


def dispatch(x: torch.Tensor, ids: torch.Tensor, most: int, experts: int, use_fp8: bool, group: str) -> Any:
    """Rows of each expert (with scales in fp8), their numbers, and the handle."""
    _groups.check_tensor("x", x, (torch.bfloat16,))
    _groups.check_tensor("topk_idx", ids, (torch.int64,))
    if x.dim() != 2 or ids.dim() != 2 or ids.shape[0] != x.shape[0]:
        raise errors.InvalidArgument(
            f"topk_idx: shape {tuple(ids.shape)} given with x of {tuple(x.shape)}, allowed are as many rows as x has"
        )
    made, routing = route_and_dispatch(
        x,
        ids,
        experts=experts,
        max_tokens=most,
        wire="quantised" if use_fp8 else "type",
        layout="by_expert",
        group=group,
    )
    here = experts // _groups.size_of(group)
    rows = [one.view(here, -1, one.shape[1]) for one in (made if use_fp8 else (made,))]
    if use_fp8:  # the last two axes of scales are column-major, as grouped products read them
        rows[1] = rows[1].transpose(1, 2).contiguous().transpose(1, 2)
    return tuple(rows) if use_fp8 else rows[0], routing.counts.clone(), Handle(routing)


def combine(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, handle: Handle) -> torch.Tensor:
    """The weighted sums of each token's rows."""
    problem = handle.routing.problem
    _groups.check_tensor("x", x, (torch.bfloat16,))
    _groups.check_tensor("topk_idx", ids, (torch.int64,))
    _groups.check_tensor("topk_weights", weights, (torch.float32,))
    shape = rows_shape(handle)
    if tuple(x.shape) != shape:
        raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed is {shape}")
    # Weights reach the experts' ranks by a routing of their own, whose rows lie where those of the dispatch do.
    memory = torch.ops.tandem.route(ids, weights, *problem.arguments())
    return _experts.combine(x.reshape(-1, problem.hidden), _experts.Routing(memory, weights, problem))


def rows_shape(handle: Handle) -> tuple[int, int, int]:
    """The shape of rows by expert."""
    problem = handle.routing.problem
    return (problem.experts // problem.pes(), problem.pes() * problem.max_tokens, problem.hidden)


def handle_of(value: Any) -> Handle:
    """`value`, if it is the handle of a low-latency dispatch."""
    if not isinstance(value, Handle):
        raise errors.InvalidType(f"handle: {shown(value)} given, allowed is the handle of a low_latency_dispatch")
    return value
