"""Events and tuning options in DeepEP's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


class EventHandle:
    """An event on the current stream of a GPU. On CPUs calls are complete when they return, so it waits for nothing."""

    def __init__(self) -> None:
        self._event: Any = None
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            self._event = torch.cuda.Event()
            self._event.record()

    def current_stream_wait(self) -> None:
        """Lets the current stream wait for the event."""
        if self._event is not None:
            torch.cuda.current_stream().wait_event(self._event)


class EventOverlap:
    """An event, or none, that a `with` block waits for at its end."""

    def __init__(self, event: EventHandle | None = None, extra_tensors: Any = None) -> None:
        """`extra_tensors` live as long as this object."""
        self.event = event
        self.extra_tensors = extra_tensors

    def current_stream_wait(self) -> None:
        """Lets the current stream wait for the event."""
        if self.event is not None:
            self.event.current_stream_wait()

    def __enter__(self) -> EventOverlap:
        return self

    def __exit__(self, *error: object) -> None:
        self.current_stream_wait()


def event_of(async_finish: bool) -> EventOverlap:
    """The event that a call returns."""
    return EventOverlap(EventHandle() if async_finish else None)


@dataclass
class Config:
    """Tuning options of DeepEP's kernels, which Tandem does not have."""

    num_sms: int = 20
    num_max_nvl_chunked_send_tokens: int = 6
    num_max_nvl_chunked_recv_tokens: int = 256
    num_max_rdma_chunked_send_tokens: int = 6
    num_max_rdma_chunked_recv_tokens: int = 256

    def get_nvl_buffer_size_hint(self, hidden_bytes: int, num_ranks: int) -> int:
        """Returns 0, because plans hold the memory."""
        return 0

    def get_rdma_buffer_size_hint(self, hidden_bytes: int, num_ranks: int) -> int:
        """Returns 0, because plans hold the memory."""
        return 0
