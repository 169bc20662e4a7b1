"""Works of the c10d backend for tensors on GPUs, whose streams and events this test plays."""

from __future__ import annotations

import pytest
import tandem

torch = pytest.importorskip("torch")


class Stream:
    """Keeps the events that it waits for."""

    def __init__(self):
        self.waits_for = []

    def wait_event(self, event):
        self.waits_for.append(event)


class Event:
    """A point of a stream that the GPU reaches when the test says so."""

    reached = False

    def query(self):
        return self.reached


class World:
    """A world that is open, and its error."""

    _handle = 1
    failure = None

    def error(self):
        return self.failure


@pytest.fixture
def streams(monkeypatch):
    """The current streams, the last one first. A work is made in the first of them."""
    from tandem.torch import _work

    made = [Stream()]
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: made[-1])
    monkeypatch.setattr(_work, "mark", lambda device: (made[-1], Event()))
    return made


def work_of(world):
    from tandem.torch import _work

    return _work.TandemWork(world, [torch.ones(1)], torch.device("cuda", 0))


def test_wait_orders_streams_and_does_not_end_the_call(streams):
    work = work_of(World())
    event = work._mark[1]
    assert work.wait() and streams[0].waits_for == []  # the stream of the call is ordered as it is
    streams.append(Stream())
    assert work.wait() and streams[1].waits_for == [event]
    assert not work.is_completed() and not work.is_success() and work.exception() is None
    event.reached = True
    assert work.is_completed() and work.is_success()


def test_a_failure_completes_the_call_without_success(streams):
    world = World()
    work = work_of(world)
    world.failure = tandem.Failure("PE 1 is gone")
    assert work.is_completed() and not work.is_success() and work.exception() is world.failure
    with pytest.raises(tandem.Failure, match="PE 1 is gone"):
        work.wait()
