"""The class Buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ... import errors
from ..._library import shown, whole_option
from .. import _groups
from . import _low_latency, _normal
from ._events import Config, EventHandle, EventOverlap, event_of


def _refuse(**given: Any) -> None:
    """Raises Unsupported for the first argument that is set."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise errors.Unsupported(
                f"{name}: {shown(value)} given, allowed is {'None' if value is not True else False}"
            )


class Buffer:
    """Exchange of tokens with experts on all ranks of a group."""

    num_sms: int = 20

    def __init__(
        self,
        group: dist.ProcessGroup | None,
        num_nvl_bytes: int = 0,
        num_rdma_bytes: int = 0,
        low_latency_mode: bool = False,
        num_qps_per_rank: int = 24,
        allow_nvlink_for_low_latency_mode: bool = True,
        allow_mnnvl: bool = False,
        *,
        use_fabric: bool = False,
        explicitly_destroy: bool = False,
        enable_shrink: bool = False,
        comm: Any = None,
    ) -> None:
        """The ranks of a group make it together. `low_latency_mode` allows the low-latency calls, too."""
        _refuse(allow_mnnvl=allow_mnnvl, use_fabric=use_fabric, enable_shrink=enable_shrink, comm=comm)
        self._name = _groups.resolve(group)
        self.group = _groups.find(self._name)
        self.rank, self.group_size = _groups.rank_in(self._name), _groups.size_of(self._name)
        self.num_nvl_bytes, self.num_rdma_bytes = num_nvl_bytes, num_rdma_bytes
        self.low_latency_mode, self.explicitly_destroy = bool(low_latency_mode), bool(explicitly_destroy)
        self._next_rows: dict[tuple[int, int, int], torch.Tensor] = {}
        self._is_open = True

    def destroy(self) -> None:
        """Ends the use of the buffer. The memory stays with the group's world (`tandem.torch.shutdown`)."""
        if not self.explicitly_destroy:
            raise errors.InvalidArgument("explicitly_destroy: False given, allowed with destroy is True")
        self._is_open = False
        self._next_rows.clear()

    def _require(self, low_latency: bool = False) -> None:
        if not self._is_open:
            raise errors.InvalidArgument("buffer: a destroyed one given, allowed is one that is open")
        if low_latency and not self.low_latency_mode:
            raise errors.InvalidArgument("low_latency_mode: False given, allowed with low-latency calls is True")

    # Options and memory, which have no effect.

    @staticmethod
    def is_sm90_compiled() -> bool:
        """Returns True: kernels for Hopper are in the library for GPUs."""
        return True

    @staticmethod
    def set_num_sms(new_num_sms: int) -> None:
        """Sets the default of Config.num_sms."""
        if whole_option("new_num_sms", new_num_sms) % 2 != 0:
            raise errors.InvalidArgument(f"new_num_sms: {new_num_sms} given, allowed is an even number")
        Buffer.num_sms = new_num_sms

    @staticmethod
    def capture() -> EventOverlap:
        """Records an event on the current stream."""
        return EventOverlap(EventHandle())

    @staticmethod
    def get_low_latency_rdma_size_hint(
        num_max_dispatch_tokens_per_rank: int, hidden: int, num_ranks: int, num_experts: int
    ) -> int:
        """Returns 0, because plans hold the memory."""
        return 0

    @staticmethod
    def get_dispatch_config(num_ranks: int) -> Config:
        """Returns tuning options."""
        return Config(Buffer.num_sms)

    @staticmethod
    def get_combine_config(num_ranks: int) -> Config:
        """Returns tuning options."""
        return Config(Buffer.num_sms)

    def get_comm_stream(self) -> Any:
        """Returns the current stream, on which calls run."""
        return torch.cuda.current_stream()

    def get_local_buffer_tensor(self, *arguments: Any, **options: Any) -> torch.Tensor:
        """Raises Unsupported: staging memory belongs to plans."""
        raise errors.Unsupported("get_local_buffer_tensor: not available, because staging memory belongs to plans")

    def clean_low_latency_buffer(self, num_max_dispatch_tokens_per_rank: int, hidden: int, num_experts: int) -> None:
        """Does nothing: calls of both kinds may follow each other."""
        self._require()

    # One row for each token and rank.

    def get_dispatch_layout(
        self,
        topk_idx: torch.Tensor,
        num_experts: int,
        previous_event: EventOverlap | None = None,
        async_finish: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[torch.Tensor, None, torch.Tensor, torch.Tensor, EventOverlap]:
        """Counts this rank's tokens.

        Returns tokens of each rank, None, tokens of each expert, whether each rank gets each token, and an event.
        """
        self._require()
        _groups.check_tensor("topk_idx", topk_idx, (torch.int64,))
        experts = whole_option("num_experts", num_experts)
        if topk_idx.dim() != 2:
            raise errors.InvalidArgument(f"topk_idx: {topk_idx.dim()} axes given, allowed are 2")
        if experts < 1 or experts % self.group_size != 0:
            raise errors.InvalidArgument(
                f"num_experts: {experts} given, allowed is a positive multiple of {self.group_size} ranks"
            )
        _wait(previous_event)
        is_chosen = torch.zeros((topk_idx.shape[0], experts + 1), dtype=torch.bool, device=topk_idx.device)
        is_valid = (topk_idx >= 0) & (topk_idx < experts)
        is_chosen.scatter_(1, torch.where(is_valid, topk_idx, experts), True)
        is_chosen = is_chosen[:, :experts]
        is_token_in_rank = is_chosen.view(topk_idx.shape[0], self.group_size, experts // self.group_size).any(-1)
        per_rank, per_expert = (one.sum(0, dtype=torch.int32) for one in (is_token_in_rank, is_chosen))
        return per_rank, None, per_expert, is_token_in_rank, event_of(async_finish)

    def dispatch(
        self,
        x: Any,
        handle: Any = None,
        num_tokens_per_rank: torch.Tensor | None = None,
        num_tokens_per_rdma_rank: torch.Tensor | None = None,
        is_token_in_rank: torch.Tensor | None = None,
        num_tokens_per_expert: torch.Tensor | None = None,
        topk_idx: torch.Tensor | None = None,
        topk_weights: torch.Tensor | None = None,
        expert_alignment: int = 1,
        num_worst_tokens: int = 0,
        config: Config | None = None,
        previous_event: EventOverlap | None = None,
        async_finish: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[Any, Any, Any, Any, Any, EventOverlap]:
        """Sends each token once to every rank that has an expert of it.

        `x` is bfloat16, or a pair of float8_e4m3fn and scales for each 128 elements. With `topk_idx`, the other
        arguments are those that `get_dispatch_layout` returns for it. Returns received rows by rank and token, their
        experts here, their weights, rows of each expert, the handle, and an event. A call with a `handle` goes along
        its routes, and returns None for all between rows and event.
        """
        self._require()
        _wait(previous_event)
        if handle is not None:
            made = _normal.handle_of(handle)
            _refuse(topk_idx=topk_idx, topk_weights=topk_weights)
            return _normal.send(*_normal.split(x, made.hidden), made), None, None, None, None, event_of(async_finish)
        rows, scales = _normal.split(x)
        align, worst = (
            whole_option("expert_alignment", expert_alignment),
            whole_option("num_worst_tokens", num_worst_tokens),
        )
        if align < 1 or worst < 0:
            name, value = ("expert_alignment", align) if align < 1 else ("num_worst_tokens", worst)
            raise errors.InvalidArgument(f"{name}: {value} given, allowed is {1 if align < 1 else 0} or more")
        made = _normal.new_handle(
            rows, scales, num_tokens_per_expert, is_token_in_rank, topk_idx, topk_weights, worst, self._name
        )
        received = _normal.send(rows, scales, made)
        ids, weights = (None, None) if topk_idx is None else _normal.received_choices(made, self.rank)
        counts = [] if worst else _normal.rows_of_experts(made, num_tokens_per_expert, topk_idx is not None, align)
        return received, ids, weights, counts, made, event_of(async_finish)

    def combine(
        self,
        x: torch.Tensor,
        handle: Any,
        topk_weights: torch.Tensor | None = None,
        bias: Any = None,
        config: Config | None = None,
        previous_event: EventOverlap | None = None,
        async_finish: bool = False,
        allocate_on_comm_stream: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None, EventOverlap]:
        """Adds the rows of each token over ranks, without weights, and `bias`, a tensor or a pair of them.

        Returns the sums, those of `topk_weights`, and an event.
        """
        self._require()
        _wait(previous_event)
        made = _normal.handle_of(handle)
        first, *rest = bias if isinstance(bias, tuple) else (bias,)
        for one in (first, *rest):
            if one is not None:
                _groups.check_tensor("bias", one, (torch.bfloat16,))
        out = _normal.add_up(x, made, first)
        for one in rest:
            out = out if one is None else out + one
        weights = None if topk_weights is None else _normal.add_up_weights(topk_weights, made)
        return out, weights, event_of(async_finish)

    # Rows of each expert.

    def low_latency_dispatch(
        self,
        x: torch.Tensor,
        topk_idx: torch.Tensor,
        num_max_dispatch_tokens_per_rank: int,
        num_experts: int,
        cumulative_local_expert_recv_stats: torch.Tensor | None = None,
        dispatch_wait_recv_cost_stats: torch.Tensor | None = None,
        use_fp8: bool = True,
        round_scale: bool = False,
        use_ue8m0: bool = False,
        async_finish: bool = False,
        return_recv_hook: bool = False,
    ) -> tuple[Any, torch.Tensor, Any, EventOverlap, Callable[[], None] | None]:
        """Sends tokens to their experts, without the CPU.

        Returns rows of each expert here, the number of rows, the handle, an event, and a hook. With `use_fp8` the rows
        are a pair with scales for each 128 elements.
        """
        self._require(True)
        _refuse(
            dispatch_wait_recv_cost_stats=dispatch_wait_recv_cost_stats, round_scale=round_scale, use_ue8m0=use_ue8m0
        )
        most, experts = (
            whole_option("num_max_dispatch_tokens_per_rank", num_max_dispatch_tokens_per_rank),
            whole_option("num_experts", num_experts),
        )
        rows, counts, handle = _low_latency.dispatch(x, topk_idx, most, experts, bool(use_fp8), self._name)
        if cumulative_local_expert_recv_stats is not None:
            _groups.check_tensor(
                "cumulative_local_expert_recv_stats", cumulative_local_expert_recv_stats, (torch.int32,)
            )
            cumulative_local_expert_recv_stats += counts
        return rows, counts, handle, event_of(async_finish), _nothing if return_recv_hook else None

    def low_latency_combine(
        self,
        x: torch.Tensor,
        topk_idx: torch.Tensor,
        topk_weights: torch.Tensor,
        handle: Any,
        use_logfmt: bool = False,
        zero_copy: bool = False,
        async_finish: bool = False,
        return_recv_hook: bool = False,
        out: torch.Tensor | None = None,
        combine_wait_recv_cost_stats: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, EventOverlap, Callable[[], None] | None]:
        """Adds the rows of each token times its weights. Returns the sums, an event, and a hook.

        With `zero_copy`, the rows are those of `get_next_low_latency_combine_buffer`.
        """
        self._require(True)
        _refuse(use_logfmt=use_logfmt, combine_wait_recv_cost_stats=combine_wait_recv_cost_stats)
        made = _low_latency.handle_of(handle)
        if zero_copy:
            x = self.get_next_low_latency_combine_buffer(made)
        result = _low_latency.combine(x, topk_idx, topk_weights, made)
        if out is not None:
            _groups.check_tensor("out", out, (torch.bfloat16,))
            if out.shape != result.shape:
                raise errors.InvalidArgument(f"out: shape {tuple(out.shape)} given, allowed is {tuple(result.shape)}")
            result = out.copy_(result)
        return result, event_of(async_finish), _nothing if return_recv_hook else None

    def get_next_low_latency_combine_buffer(self, handle: Any) -> torch.Tensor:
        """Returns rows of experts that the caller fills for a low_latency_combine with `zero_copy`."""
        self._require(True)
        made = _low_latency.handle_of(handle)
        shape = _low_latency.rows_shape(made)
        if shape not in self._next_rows:
            device = made.routing.memory.device
            self._next_rows[shape] = torch.empty(shape, dtype=torch.bfloat16, device=device)
        return self._next_rows[shape]


def _wait(event: EventOverlap | None) -> None:
    if event is None:
        return
    if not isinstance(event, EventOverlap):
        raise errors.InvalidType(f"previous_event: {shown(event)} given, allowed is the result of Buffer.capture")
    event.current_stream_wait()


def _nothing() -> None:
    """The hook of calls whose results have arrived."""
