"""Worlds: this process as one PE of a job, with collectives, symmetric memory and messages."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from . import _c, _exit, _structs, errors
from ._library import numbers_option, shown, text_option, whole_option
from ._memory import Memory, memory_of, result_like
from ._plan import Plan
from .symmetric import Registered, Symmetric, Views, shape_option


def _int_option(name: str, value: object) -> int:
    number = whole_option(name, value)
    if not -(2**31) <= number < 2**31:
        raise errors.InvalidArgument(f"{name}: {shown(value)} given, allowed is a number of 32 bits")
    return number


def _bytes_option(name: str, value: object) -> int:
    number = whole_option(name, value)
    if not 0 <= number < 2**63:
        raise errors.InvalidArgument(f"{name}: {shown(value)} given, allowed is 0 or more")
    return number


def _choice(name: str, value: object, allowed: dict[str, int]) -> int:
    if isinstance(value, str) and value in allowed:
        return allowed[value]
    kind = errors.InvalidArgument if isinstance(value, str) else errors.InvalidType
    raise kind(f"{name}: {shown(value)} given, allowed is one of {', '.join(allowed)}")


def options_of(device: str | None, given: dict[str, Any]) -> _structs.Options:
    """The options of a world. `given` holds fields of tandem_options by name."""
    made = _structs.Options()
    kinds = {field[0]: field[1] for field in _structs.Options._fields_}
    if device is not None:
        made.device = _choice("device", device, _c.DEVICES)
    for name, value in given.items():
        kind = kinds.get(name)
        if kind is None:
            raise errors.InvalidArgument(f"{shown(name)}: no such option, allowed are {', '.join(kinds)}")
        if kind is ctypes.c_double:
            setattr(made, name, numbers_option(name, [value])[0])
        elif kind is ctypes.c_char_p:
            made.algorithms = text_option(name, value).encode()
        elif name == "any_memory":
            made.any_memory = bool(value)
        else:
            setattr(made, name, _bytes_option(name, value) if kind is ctypes.c_size_t else _int_option(name, value))
    return made


class World:
    """This process as one PE of a world of processes. Several threads may use it: their calls take turns.

    All PEs make the same calls in the same order. On CPUs a call returns when its result is there. On GPUs it enqueues
    its work in `stream` and returns. `close` ends the world in good order; so does leaving a `with` block.
    """

    def __init__(self, handle: int) -> None:
        """Takes over a tandem_world. Programs call one of the class methods."""
        library = _c.library()
        self._handle: int | None = handle
        self._lock = threading.RLock()
        self._plans: list[Plan] = []
        self._views = Views()
        self.pe: int = library.tandem_pe(handle)
        """The number of this PE, from 0."""
        self.pes: int = library.tandem_num_pes(handle)
        """The number of PEs."""
        self.device = "gpu" if library.tandem_device_of(handle) == _c.DEVICES["gpu"] else "host"
        """`gpu` or `host`."""
        _exit.watch(self)

    @classmethod
    def from_environment(cls, *, device: str | None = None, **options: Any) -> World:
        """Joins the world of a job of torchrun, srun or `tandem launch`.

        `options` are the fields of tandem_options (include/tandem.h), such as heap_bytes, timeout_s or algorithms.
        """
        made = options_of(device, options)
        handle = _c.created("world_from_environment", ctypes.byref(made))
        assert handle is not None
        return cls(handle)

    @classmethod
    def from_id(cls, unique: bytes, pe: int, pes: int, *, device: str | None = None, **options: Any) -> World:
        """Joins the world of an id (`tandem.unique_id`) as PE `pe` of `pes`."""
        if not isinstance(unique, (bytes, bytearray)):
            raise errors.InvalidType(f"unique: {shown(unique)} given, allowed is the result of tandem.unique_id")
        if len(unique) != _c.UNIQUE_ID_BYTES:
            raise errors.InvalidArgument(f"unique: {len(unique)} bytes given, allowed is {_c.UNIQUE_ID_BYTES}")
        made = options_of(device, options)
        handle = _c.created(
            "world_create", bytes(unique), _int_option("pe", pe), _int_option("pes", pes), ctypes.byref(made)
        )
        assert handle is not None
        return cls(handle)

    @classmethod
    def from_torch(cls, group: Any = None, *, device: str | None = None, **options: Any) -> World:
        """Joins a world of the processes of a torch process group. The id travels through the group's store."""
        from ._torch_ids import exchange_id  # imports torch

        unique, pe, pes = exchange_id(group)
        return cls.from_id(unique, pe, pes, device=device, **options)

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else f"PE {self.pe} of {self.pes} on {self.device}"
        return f"<tandem.World: {state}>"

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        elif self._handle is not None:
            self.abort(f"{type(error).__name__}: {error}")
            self._leave()

    # The end of a world.

    def close(self) -> None:
        """Waits for the other PEs, unless the world is over, and destroys the world. All PEs call it.

        Raises InvalidArgument while arrays exist that view symmetric memory, because the memory ends with the world.
        """
        if self._handle is None:
            return
        self._views.require_none("world")
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            for plan in list(self._plans):
                plan.close()
            handle, self._handle = self._handle, None
            if handle is not None:
                _exit.forget(self)
                _c.call("world_destroy", handle)

    def abort(self, why: str = "no reason given") -> None:
        """Ends the world on all PEs: blocked calls raise Failure with this text. Any thread may call it."""
        _c.call("world_abort", self._handle, str(why).replace("\0", " ").encode(errors="replace"))

    def error(self) -> errors.Error | None:
        """The error that ended the world, or None. Any thread may call it; it never blocks."""
        return _c.error_of(_c.library().tandem_world_error(self._handle))

    def split(self, color: int, key: int = 0, **options: Any) -> World | None:
        """Makes a world for the PEs that pass the same `color`, numbered by `key`. A negative color gives None."""
        made = options_of(None, options)
        with self._lock:
            handle = _c.created(
                "world_split", self._handle, _int_option("color", color), _int_option("key", key), ctypes.byref(made)
            )
        return None if handle is None else World(handle)

    def barrier(self, *, stream: Any = None) -> None:
        """Blocks until all PEs have called it.

        With a stream of a GPU it is enqueued there, and later work in the stream sees the earlier writes of all PEs.
        """
        on = self._stream(stream)
        with self._lock:
            if stream is None:
                _c.call("barrier", self._handle)
            else:
                _c.call("barrier_on", self._handle, on)

    def synchronize(self, stream: Any = None) -> None:
        """Blocks until the stream is empty. Raises the failure of the device or of another PE."""
        with self._lock:
            _c.call("synchronize", self._handle, self._stream(stream))

    # Collectives. Each returns `out`, or a new array of the kind of `x`.

    def all_reduce(self, x: Any, op: str = "sum", *, out: Any = None, stream: Any = None) -> Any:
        """Reduces `x` of all PEs: sum, prod, min, max or avg. Every PE gets the result; `out` may be `x`."""
        given = self._input("x", x)
        return self._run("all_reduce", given, given.shape, x, out, given.count, stream, _operation(op))

    def reduce(self, x: Any, op: str = "sum", *, root: int = 0, out: Any = None, stream: Any = None) -> Any:
        """Reduces `x` of all PEs. PE `root` gets the result, the others None."""
        given = self._input("x", x)
        return self._at_root("reduce", given, given.shape, x, out, root, stream, _operation(op))

    def reduce_scatter(self, x: Any, op: str = "sum", *, out: Any = None, stream: Any = None) -> Any:
        """Reduces `x` of all PEs. PE i gets the i-th part of the first axis, a multiple of the number of PEs."""
        given = self._input("x", x)
        shape = self._part(given)
        return self._run("reduce_scatter", given, shape, x, out, given.count // self.pes, stream, _operation(op))

    def all_gather(self, x: Any, *, out: Any = None, stream: Any = None) -> Any:
        """Joins `x` of all PEs along the first axis. Every PE gets the result."""
        given = self._input("x", x)
        return self._run("all_gather", given, self._joined(given), x, out, given.count, stream)

    def all_to_all(self, x: Any, *, out: Any = None, stream: Any = None) -> Any:
        """Exchanges parts of the first axis: part j of PE i becomes part i of PE j."""
        given = self._input("x", x)
        self._part(given)
        return self._run("all_to_all", given, given.shape, x, out, given.count // self.pes, stream)

    def broadcast(self, x: Any, *, root: int = 0, out: Any = None, stream: Any = None) -> Any:
        """Returns the array of PE `root`. The others pass an array of the same shape; `out` may be `x`."""
        given = self._input("x", x)
        return self._run("broadcast", given, given.shape, x, out, given.count, stream, _int_option("root", root))

    def gather(self, x: Any, *, root: int = 0, out: Any = None, stream: Any = None) -> Any:
        """Joins `x` of all PEs along the first axis. PE `root` gets the result, the others None."""
        given = self._input("x", x)
        return self._at_root("gather", given, self._joined(given), x, out, root, stream)

    def scatter(self, x: Any, *, root: int = 0, out: Any, stream: Any = None) -> Any:
        """Sends part i of the first axis of the root's `x` to PE i. The other PEs pass None for `x`."""
        number = _int_option("root", root)
        result = self._output(out)
        given = result if self.pe != number else self._input("x", x)
        if self.pe == number and (given.dtype != result.dtype or self._part(given) != result.shape):
            raise errors.InvalidArgument(
                f"out: {result.dtype} of shape {result.shape} given, allowed is {given.dtype} of {self._part(given)}"
            )
        self._call("scatter", given, result, result.count, stream, number)
        return out

    # Messages.

    def send(self, x: Any, pe: int, *, stream: Any = None) -> None:
        """Sends `x` to PE `pe`, which receives it."""
        self.send_recv([(x, pe)], [], stream=stream)

    def recv(self, out: Any, pe: int, *, stream: Any = None) -> Any:
        """Receives `out` from PE `pe` and returns it."""
        self.send_recv([], [(out, pe)], stream=stream)
        return out

    def send_recv(
        self, sends: Iterable[tuple[Any, int]], receives: Iterable[tuple[Any, int]], *, stream: Any = None
    ) -> None:
        """Sends and receives all messages at once: pairs of an array and the other PE."""
        out, coming = _pairs("sends", sends), _pairs("receives", receives)
        outgoing = [(self._input(f"sends[{i}]", x), pe) for i, (x, pe) in enumerate(out)]
        incoming = [(self._output(x, f"receives[{i}]"), pe) for i, (x, pe) in enumerate(coming)]
        with self._lock:
            _c.call("send_recv", self._handle, *_messages(outgoing), *_messages(incoming), self._stream(stream))
            self._wait()

    # Symmetric memory.

    def empty(self, shape: int | Sequence[int], dtype: str = "float32") -> Symmetric:
        """Allocates symmetric memory: the same place on all PEs, whose contents are undefined. All PEs call it."""
        return Symmetric(self, shape_option(shape), dtype)

    def zeros(self, shape: int | Sequence[int], dtype: str = "float32") -> Symmetric:
        """Allocates symmetric memory that holds zeros on all PEs, once the call has returned. All PEs call it."""
        made = self.empty(shape, dtype)
        made.clear()
        self.barrier()
        return made

    def register(self, x: Any) -> Registered:
        """Makes memory of `x` symmetric, so that calls use it in place and peers reach it. All PEs call it.

        On GPUs the memory is one of PyTorch's expandable segments, or of CUDA's virtual memory with exportable handles.
        It lies at the same place of allocations of the same sizes. On CPUs it is a shared mapping of a whole memory file
        (`os.memfd_create` with `MFD_ALLOW_SEALING`) whose descriptor is open.
        """
        return Registered(self, self._output(x, "x"))

    def signals(self, count: int) -> Symmetric:
        """Allocates signal words, which hold zeros. All PEs call it."""
        return self.zeros((count,), "uint64")

    # How calls reach the library.

    def _stream(self, stream: Any) -> int | None:
        if self.device == "host":
            if stream is not None:
                raise errors.InvalidArgument(f"stream: {shown(stream)} given, allowed on CPUs is None")
            return None
        if hasattr(stream, "__cuda_stream__"):
            return int(stream.__cuda_stream__()[1])
        return None if stream is None else whole_option("stream", getattr(stream, "cuda_stream", stream))

    def _wait(self) -> None:
        if self.device == "host":
            _c.call("synchronize", self._handle, None)

    def _input(self, name: str, value: Any) -> Memory:
        found = memory_of(name, value)
        if found.is_gpu != (self.device == "gpu"):
            here, there = ("a GPU", "the host") if self.device == "gpu" else ("the host", "a GPU")
            raise errors.InvalidArgument(f"{name}: memory of {there} given, allowed is memory of {here}")
        return found

    def _output(self, value: Any, name: str = "out") -> Memory:
        found = self._input(name, value)
        if not found.is_writable:
            raise errors.InvalidArgument(f"{name}: an array that is read-only given, allowed is a writable one")
        return found

    def _joined(self, given: Memory) -> tuple[int, ...]:
        return (self.pes * (given.shape or (1,))[0], *given.shape[1:])

    def _part(self, given: Memory) -> tuple[int, ...]:
        if not given.shape or given.shape[0] % self.pes != 0:
            raise errors.InvalidArgument(
                f"x: shape {given.shape} given, allowed is a first axis that is a multiple of {self.pes} PEs"
            )
        return (given.shape[0] // self.pes, *given.shape[1:])

    def _at_root(
        self, name: str, given: Memory, shape: tuple[int, ...], x: Any, out: Any, root: int, stream: Any, *last: int
    ) -> Any:
        number = _int_option("root", root)
        if self.pe == number:
            return self._run(name, given, shape, x, out, given.count, stream, *last, number)
        self._call(name, given, given, given.count, stream, *last, number)
        return None

    def _run(
        self, name: str, given: Memory, shape: tuple[int, ...], x: Any, out: Any, count: int, stream: Any, *last: int
    ) -> Any:
        if out is None:
            out = result_like(x, shape)
        result = self._output(out)
        if result.dtype != given.dtype or result.shape != shape:
            raise errors.InvalidArgument(
                f"out: {result.dtype} of shape {result.shape} given, allowed is {given.dtype} of {shape}"
            )
        self._call(name, given, result, count, stream, *last)
        return out

    def _call(self, name: str, given: Memory, result: Memory, count: int, stream: Any, *last: int) -> None:
        code = _c.TYPES[given.dtype]
        self._enqueue(name, given.address, result.address, count, code, *last, self._stream(stream))

    def _enqueue(self, name: str, *arguments: int | None) -> None:
        """Calls a function of the C API with this world and these arguments."""
        with self._lock:
            _c.call(name, self._handle, *arguments)
            self._wait()


def _operation(op: object) -> int:
    return _choice("op", op, _c.OPERATIONS)


def _pairs(name: str, given: Any) -> list[tuple[Any, int]]:
    try:
        return [(x, _int_option(f"{name}: pe", pe)) for x, pe in given]
    except (TypeError, ValueError) as error:
        if isinstance(error, errors.Error):
            raise
        raise errors.InvalidType(f"{name}: {shown(given)} given, allowed are pairs of an array and a PE") from error


def _messages(given: list[tuple[Memory, int]]) -> tuple[Any, int]:
    made = [_structs.Message(one.address, one.count, _c.TYPES[one.dtype], pe) for one, pe in given]
    return ((_structs.Message * len(made))(*made) if made else None), len(made)
