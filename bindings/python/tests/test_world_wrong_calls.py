"""Wrong calls of worlds: each raises an error of the package, and the world goes on."""

from __future__ import annotations

import array

import pytest
import tandem

numpy = pytest.importorskip("numpy")


class Bad:
    """Raises wherever it is looked at."""

    def __repr__(self):
        raise RuntimeError("no text")

    def __index__(self):
        raise RuntimeError("no number")

    @property
    def __array_interface__(self):
        raise RuntimeError("no array")

    def __dlpack_device__(self):
        raise RuntimeError("no device")

    def __dlpack__(self):
        raise RuntimeError("no tensor")


@pytest.fixture(scope="module")
def world():
    made = tandem.World.from_id(tandem.unique_id(), 0, 1, device="host")
    yield made
    assert made.all_reduce(numpy.ones(3)).tolist() == [1, 1, 1]  # it has survived
    made.close()


NO_ARRAYS = [None, 3, "x", [1.0], {}, object(), Bad(), int, numpy.float64, memoryview(b"ab").cast("?"), len]
NO_ARRAYS += [
    numpy.ones(3, "U1"),
    numpy.ones(3, bool),
    numpy.ones(3, "c16"),
    numpy.ones(3, object),
    numpy.ones(3, "i2"),
]
NO_ARRAYS += [numpy.ones(3, ">f4"), numpy.ones((3, 3)).T[:, 1:], numpy.ones(9)[::3], numpy.ones((2, 3)).T]
NO_INTS = [1.5, "1", None, Bad(), [1], True]
NO_PES = [*NO_INTS, -1, 1, 2**31, 2**80]
COLLECTIVES = ["all_reduce", "reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "gather"]


def refused(function, *arguments, **options):
    with pytest.raises((tandem.Error,)) as caught:
        function(*arguments, **options)
    text = str(caught.value)
    assert text
    assert "\n" not in text


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(world, name):
    call = getattr(world, name)
    x = numpy.ones((2, 2), "f4")
    for wrong in NO_ARRAYS:
        refused(call, wrong)
        refused(call, x, out=wrong) if wrong is not None else None
    read_only = numpy.ones((2, 2), "f4")
    read_only.flags.writeable = False
    for out in (numpy.ones((2, 3), "f4"), numpy.ones((2, 2)), numpy.ones(4, "f4"), read_only, bytes(16)):
        refused(call, x, out=out)
    refused(call, b"abcd")  # of which there is no second one to write to
    for stream in (0, "x", Bad()):
        refused(call, x, stream=stream)
    if name in ("all_reduce", "reduce", "reduce_scatter"):
        for op in ("x", "SUM", None, 0, Bad(), ["sum"]):
            refused(call, x, op)
    if name in ("reduce", "broadcast", "gather"):
        for root in NO_PES:
            refused(call, x, root=root)


def test_types_have_the_names_of_numpy(world):
    with pytest.raises(tandem.InvalidType, match="x: complex64 elements given, allowed are float32"):
        world.all_reduce(numpy.ones(3, "c8"))


def test_scatter_and_messages(world):
    x = numpy.ones(2)
    for wrong in NO_ARRAYS:
        refused(world.scatter, wrong, out=x)
        refused(world.scatter, x, out=wrong)
        refused(world.send, wrong, 0)
        refused(world.recv, wrong, 0)
    for pe in [*NO_INTS, -1, 2**31]:
        refused(world.send, x, pe)
        refused(world.recv, x, pe)
    for wrong in (3, "ab", [1], [(x, 0, 0)], [x], Bad()):
        refused(world.send_recv, wrong, [])
        refused(world.send_recv, [], wrong)


def test_registered_memory_and_barriers(world):
    read_only = numpy.ones(4, "f4")
    read_only.flags.writeable = False
    for wrong in [*NO_ARRAYS, numpy.ones((2, 2), "f4").T, read_only, numpy.ones(4, "c8"), numpy.ones(4, "f4")]:
        refused(world.register, wrong)
    for stream in (0, "x", Bad()):
        refused(world.barrier, stream=stream)


def test_symmetric_memory(world):
    for shape in ("x", None, 1.5, (2, -1), (2**40, 2**40), Bad(), {2}, [[1]]):
        refused(world.empty, shape)
    for dtype in ("x", "f4", None, 3, float, Bad()):
        refused(world.empty, 4, dtype)
    memory, words = world.zeros(4), world.signals(2)
    for pe in NO_PES:
        refused(memory.get_buffer, pe)
        refused(memory.put, numpy.ones(1, "f4"), pe)
        refused(words.signal, 1, pe)
    for wrong in NO_ARRAYS:
        refused(memory.put, wrong, 0)
    for offset in [*NO_INTS, -1, 4, 2**70]:
        refused(memory.put, numpy.ones(1, "f4"), 0, offset=offset)
        refused(words.wait, 0, index=offset)
    for value in [*NO_INTS, -1, 2**64]:
        refused(words.signal, value, 0)
        refused(words.wait, value)
    refused(memory.put, numpy.ones(1), 0)
    refused(memory.signal, 1, 0)
    refused(memory.wait, 0)
    memory.free()
    refused(memory.put, numpy.ones(1, "f4"), 0)
    refused(lambda: memory.local)


def test_worlds(world):
    unique = tandem.unique_id()
    for wrong in (b"", "x", None, bytes(127), bytes(128), numpy.ones(2), Bad()):
        refused(tandem.World.from_id, wrong, 0, 1, device="host")
    for pe in NO_PES:
        refused(tandem.World.from_id, unique, pe, 1, device="host")
    for pes in [*NO_INTS, 0, -1, 2**80]:
        refused(tandem.World.from_id, unique, 0, pes, device="host")
    for device in ("x", "GPU", 1, Bad(), b"host"):
        refused(tandem.World.from_id, unique, 0, 1, device=device)
    for options in (
        {"heap_bytes": -1},
        {"heap_bytes": "1M"},
        {"timeout_s": -1},
        {"timeout_s": float("nan")},
        {"timeout_s": Bad()},
        {"algorithms": "all_reduce=nonsense"},
        {"algorithms": 3},
        {"max_blocks": -1},
        {"nonsense": 1},
    ):
        refused(tandem.World.from_id, unique, 0, 1, device="host", **options)
        refused(world.split, 0, **options)
    for color in [*NO_INTS, 2**31]:
        refused(world.split, color)
        refused(world.split, 0, color)
    for address in ("", 3, "\0", Bad()):
        refused(tandem.unique_id, address)


def test_closed_world_refuses_everything():
    closed = tandem.World.from_id(tandem.unique_id(), 0, 1, device="host")
    closed.close()
    x = array.array("f", [1])
    for call in (
        lambda: closed.all_reduce(x, out=x),
        lambda: closed.empty(4),
        lambda: closed.split(0),
        lambda: closed.send(x, 0),
        closed.barrier,
        closed.synchronize,
        closed.abort,
    ):
        refused(call)
    assert isinstance(closed.error(), tandem.InvalidArgument)
    assert "closed" in repr(closed)
