"""Dispatch and combine with one row for each token and rank."""

from __future__ import annotations

from typing import Any

import torch

from ... import errors
from ..._library import shown
from .. import _collectives, _experts, _groups

_MOST_TOP_K = 16
_LEAST_TOKENS = 16  # of a plan


class Handle:
    """The result of a dispatch for its combine, and for dispatches of other rows along the same routes."""

    def __init__(
        self,
        ids: torch.Tensor,
        weights: torch.Tensor | None,
        wire: str,
        worst: int,
        **options: Any,
    ) -> None:
        """`worst` is the number of received rows, or 0 to wait for it."""
        self.ids, self.weights, self.options = ids, weights, options
        self._routings: dict[str, _experts.Routing] = {}
        # Received rows are by rank and token: for each the number of its token, and whether there is one.
        arrays = self.routing(wire).arrays
        is_here = arrays.first_rows() < arrays.sizes.rows
        count = worst or int(is_here.sum())
        at = torch.where(is_here, is_here.cumsum(0) - 1, count)
        numbers = torch.arange(is_here.numel(), device=at.device)
        self.source = numbers.new_zeros(count + 1).scatter_(0, at, numbers)[:count]
        self.is_used = is_here.new_zeros(count + 1).scatter_(0, at, is_here)[:count]

    @property
    def hidden(self) -> int:
        return self.options["hidden"]

    def routing(self, wire: str) -> _experts.Routing:
        """The routing for rows in a form. All ranks call it alike."""
        if wire not in self._routings:
            self._routings[wire] = _experts.route(self.ids, self.weights, wire=wire, layout="in_place", **self.options)
        return self._routings[wire]

    def any_routing(self) -> _experts.Routing:
        """A routing that exists."""
        return next(iter(self._routings.values()))

    def received(self, values: torch.Tensor) -> torch.Tensor:
        """The received rows of an array of all ranks' choices."""
        return values.flatten(0, 1)[self.source]


def split(x: Any, hidden: int | None = None) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows, and the scales of rows in fp8."""
    rows, scales = x if isinstance(x, tuple) and len(x) == 2 else (x, None)
    _groups.check_tensor("x", rows, (torch.bfloat16,) if scales is None else (torch.float8_e4m3fn,))
    if rows.dim() != 2 or hidden not in (None, rows.shape[1]):
        raise errors.InvalidArgument(
            f"x: shape {tuple(rows.shape)} given, allowed is tokens x {'hidden' if hidden is None else hidden}"
        )
    return rows, scales


def _choices(
    x: torch.Tensor, ids: torch.Tensor | None, is_token_in_rank: torch.Tensor, experts: int, ranks: int
) -> torch.Tensor:
    """The experts of each token. Without them the first expert of each rank that gets the token stands for it."""
    _groups.check_tensor("is_token_in_rank", is_token_in_rank, (torch.bool,))
    if tuple(is_token_in_rank.shape) != (x.shape[0], ranks):
        raise errors.InvalidArgument(
            f"is_token_in_rank: shape {tuple(is_token_in_rank.shape)} given, allowed is {(x.shape[0], ranks)}"
        )
    if ids is not None:
        _groups.check_tensor("topk_idx", ids, (torch.int64,))
        if ids.dim() != 2 or ids.shape[0] != x.shape[0]:
            raise errors.InvalidArgument(
                f"topk_idx: shape {tuple(ids.shape)} given, allowed is {x.shape[0]} x choices of a token"
            )
        return ids
    if ranks > _MOST_TOP_K:
        raise errors.Unsupported(f"topk_idx: None given on {ranks} ranks, allowed on up to {_MOST_TOP_K}")
    firsts = torch.arange(ranks, device=x.device) * (experts // ranks)
    return torch.where(is_token_in_rank, firsts, -1)


def _most_tokens(x: torch.Tensor, worst: int, ranks: int, group: str) -> int:
    """The most tokens of a rank, which all ranks agree on."""
    if worst == 0:
        most = int(_collectives.all_reduce(torch.tensor([x.shape[0]], device=x.device), "max", group))
        return max(_LEAST_TOKENS, 1 << (most - 1).bit_length())
    if worst % ranks != 0 or worst < ranks * x.shape[0]:
        raise errors.InvalidArgument(
            f"num_worst_tokens: {worst} given, allowed is {ranks} ranks times the most tokens of one"
        )
    return worst // ranks


def new_handle(
    x: torch.Tensor,
    scales: torch.Tensor | None,
    num_tokens_per_expert: Any,
    is_token_in_rank: Any,
    topk_idx: torch.Tensor | None,
    topk_weights: torch.Tensor | None,
    worst: int,
    group: str,
) -> Handle:
    """A handle for these choices."""
    ranks = _groups.size_of(group)
    _groups.check_tensor("num_tokens_per_expert", num_tokens_per_expert, (torch.int32,))
    if (topk_idx is None) != (topk_weights is None):
        name = "topk_idx" if topk_idx is None else "topk_weights"
        raise errors.InvalidArgument(f"{name}: None given, allowed are both of topk_idx and topk_weights, or none")
    experts = num_tokens_per_expert.numel()
    ids = _choices(x, topk_idx, is_token_in_rank, experts, ranks)
    most = _most_tokens(x, worst, ranks, group)
    options = {"experts": experts, "hidden": x.shape[1], "max_tokens": most, "group": group}
    return Handle(ids, topk_weights, "type" if scales is None else "given", worst, **options)


def send(x: torch.Tensor, scales: torch.Tensor | None, handle: Handle) -> Any:
    """The rows that this rank receives, and their scales in fp8."""
    rows = _experts.dispatch(x, handle.routing("type" if scales is None else "given"), scales)
    return rows[handle.source] if scales is None else tuple(one[handle.source] for one in rows)


def received_choices(handle: Handle, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The experts of this rank that received rows chose, from 0 and -1 for others, and their weights."""
    arrays = handle.any_routing().arrays
    here = arrays.problem.experts // arrays.pes
    ids = handle.received(arrays.ids()).to(torch.int64) - rank * here
    is_here = (ids >= 0) & (ids < here) & handle.is_used.unsqueeze(1)
    weights = handle.received(arrays.weights())
    return torch.where(is_here, ids, -1), torch.where(is_here, weights, 0.0)


def rows_of_experts(handle: Handle, num_tokens_per_expert: Any, with_ids: bool, align: int) -> list[int]:
    """The number of rows of each expert here, rounded up to a multiple of `align`."""
    routing = handle.any_routing()
    if with_ids:
        counts = routing.counts.tolist()
    else:  # the numbers are all that is known of the experts
        group = routing.problem.group
        counts = _collectives.reduce_scatter(num_tokens_per_expert.contiguous(), "sum", group).tolist()
    return [-(-one // align) * align for one in counts]


def add_up(x: torch.Tensor, handle: Handle, bias: torch.Tensor | None) -> torch.Tensor:
    """The sum of each token's rows over the ranks that got it."""
    _groups.check_tensor("x", x, (torch.bfloat16,))
    if tuple(x.shape) != (handle.source.numel(), handle.hidden):
        raise errors.InvalidArgument(
            f"x: shape {tuple(x.shape)} given, allowed is {(handle.source.numel(), handle.hidden)}, as received"
        )
    routing = handle.any_routing()
    arrays = routing.arrays
    at = torch.where(handle.is_used, arrays.first_rows()[handle.source], arrays.sizes.rows)
    ones = _experts.Routing(arrays.with_ones(), routing.weights, routing.problem)
    return _experts.combine(arrays.placed(x, at), ones, bias)


def add_up_weights(weights: torch.Tensor, handle: Handle) -> torch.Tensor:
    """The sum of each token's weights over the ranks that got it."""
    _groups.check_tensor("topk_weights", weights, (torch.float32,))
    routing = handle.any_routing()
    problem = routing.problem
    if tuple(weights.shape) != (handle.source.numel(), problem.top_k):
        raise errors.InvalidArgument(
            f"topk_weights: shape {tuple(weights.shape)} given, allowed is {(handle.source.numel(), problem.top_k)}"
        )
    slots = problem.pes() * problem.max_tokens
    at = torch.where(handle.is_used, handle.source, slots)
    spread = weights.new_zeros((slots + 1, problem.top_k)).index_copy_(0, at, weights)[:slots]
    return _collectives.reduce_scatter(spread, "sum", problem.group)[: handle.ids.shape[0]]


def handle_of(value: Any) -> Handle:
    """`value`, if it is the handle of a dispatch."""
    if not isinstance(value, Handle):
        raise errors.InvalidType(f"handle: {shown(value)} given, allowed is the handle of a dispatch")
    return value
