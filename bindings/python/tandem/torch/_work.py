"""The work objects of the c10d backend: when a call is over, and what orders a stream behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from .. import _structs
from ..world import World


class Messages:
    """Messages of isend and irecv that have not begun. They begin together, so that no PE sends before it receives.

    A wait for one of them starts them all, and so does the next call of their group.
    """

    def __init__(self, world: World, device: torch.device) -> None:
        self.world = world
        self.device = device
        self.is_started = False
        self.error: BaseException | None = None
        self._sends: list[_structs.Message] = []
        self._receives: list[_structs.Message] = []
        self._streams: list[Any] = []
        self._kept: list[torch.Tensor] = []
        self._after: list[Callable[[], object]] = []
        self._lock = threading.RLock()
        self._mark = None

    def add(
        self, x: torch.Tensor, message: _structs.Message, is_send: bool, after: Callable[[], object] | None = None
    ) -> bool:
        """Adds the message of `x`, unless they have begun. `after` runs when it is enqueued."""
        with self._lock:
            if self.is_started:
                return False
            (self._sends if is_send else self._receives).append(message)
            self._kept.append(x)
            if after is not None:
                self._after.append(after)
            if self.device.type == "cuda":
                stream = torch.cuda.current_stream(self.device)
                if stream not in self._streams:
                    self._streams.append(stream)
            return True

    def start(self) -> Any:
        """Enqueues them in the current stream, behind what the streams of their calls hold. Returns the mark there."""
        with self._lock:
            if not self.is_started:
                self.is_started = True
                try:
                    self._enqueue()
                except BaseException as error:  # every work of these messages raises it
                    self.error = error
                finally:
                    self._kept.clear()
                    self._after.clear()
            if self.error is not None:
                raise self.error
            return self._mark

    def _enqueue(self) -> None:
        stream = None
        if self.device.type == "cuda":
            current = torch.cuda.current_stream(self.device)
            for one in self._streams:
                if one != current:
                    current.wait_stream(one)
            if self._streams != [current]:
                for x in self._kept:
                    x.record_stream(current)
            stream = current.cuda_stream
        enqueue_messages(self.world, self._sends, self._receives, stream)
        for after in self._after:
            after()
        self._mark = mark(self.device)


def enqueue_messages(
    world: World, sends: Sequence[_structs.Message], receives: Sequence[_structs.Message], stream: int | None
) -> None:
    """Enqueues messages that progress at once; on CPUs they are done on return."""
    arrays = [(_structs.Message * len(some))(*some) if some else None for some in (sends, receives)]
    world._enqueue("send_recv", arrays[0], len(sends), arrays[1], len(receives), stream)  # type: ignore[arg-type]


def mark(device: torch.device) -> Any:
    """The current stream and an event in it behind its work, or None on CPUs, where calls are done on return."""
    if device.type != "cuda":
        return None
    stream = torch.cuda.current_stream(device)
    return stream, stream.record_event()


class TandemWork(dist.Work):  # type: ignore[misc]
    """A call of the backend, with the tensors that it writes.

    On GPUs `wait` orders the current stream behind the call and does not block. So the call may still run when `wait`
    returns. `is_completed` is then false, as NCCL's is, and so is `is_success`. A failure there raises in the next
    `wait` or call, with the number of the PE that is gone. On CPUs a call is over when it returns. A message of isend
    or irecv begins with `wait`, `is_completed` or `get_future`, or with the next call of its group.
    """

    def __init__(
        self, world: World, result: Sequence[torch.Tensor], device: torch.device, messages: Messages | None = None
    ) -> None:
        super().__init__()
        self._world = world
        self._tensors = list(result)
        self._device = device
        self._messages = messages
        self._mark = mark(device) if messages is None else None
        self._future: Any = None

    def _started(self) -> Any:
        messages = self._messages
        if messages is not None:
            self._mark = messages.start()
            self._messages = None
        return self._mark

    def wait(self, timeout: Any = None) -> bool:
        """Lets the current stream continue behind the call. Raises the error that ended the world."""
        found = self._started()
        if found is not None:
            if (error := self.exception()) is not None:
                raise error
            current = torch.cuda.current_stream(self._device)
            if current != found[0]:
                current.wait_event(found[1])
        return True

    def synchronize(self) -> None:
        """Does what `wait` does."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the call is over on this PE, also by a failure."""
        try:
            found = self._started()
        except Exception:  # which `exception` returns and `wait` raises
            return True
        return found is None or self.exception() is not None or bool(found[1].query())

    def is_success(self) -> bool:
        """Whether the call is over without a failure. False while a GPU computes it, also behind `wait`."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error that ended the world of GPUs or the messages, or None. Other calls on CPUs raise at once."""
        messages = self._messages
        if messages is not None and messages.error is not None:
            return messages.error
        return self._world.error() if self._mark is not None and self._world._handle is not None else None

    def result(self) -> list[torch.Tensor]:
        """The tensors that the call writes."""
        return self._tensors

    def get_future(self) -> Any:
        """A future with the tensors. On GPUs it is complete, and a wait for it orders the current stream."""
        found = self._started()
        if self._future is None:
            if found is None:
                self._future = torch.futures.Future()
                self._future.set_result(self._tensors)
            else:
                self._future = torch.futures.Future(devices=[self._device])
                with torch.cuda.stream(found[0]):  # where the future's own event belongs
                    self._future.set_result(self._tensors)
        return self._future
