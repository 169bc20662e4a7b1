"""Symmetric memory of worlds: views of every PE's copy, one-sided copies, signals."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from typing import TYPE_CHECKING, Any

from . import _c, errors
from ._dlpack import bytes_tensor
from ._library import shown, whole_option
from ._memory import ITEM_BYTES, Memory

if TYPE_CHECKING:
    from .world import World


def shape_option(value: object) -> tuple[int, ...]:
    """`value` as a shape: a number, or several of 0 and more."""
    if isinstance(value, (str, bytes)) or (hasattr(value, "__iter__") and not isinstance(value, (list, tuple))):
        raise errors.InvalidType(f"shape: {shown(value)} given, allowed are whole numbers")
    sizes = value if isinstance(value, (list, tuple)) else [value]
    shape = tuple(whole_option("shape", one) for one in sizes)
    if any(one < 0 for one in shape) or math.prod(shape) >= 2**46:
        raise errors.InvalidArgument(f"shape: {shown(value)} given, allowed are sizes of 0 or more that memory holds")
    return shape


class Views:
    """The views of symmetric memory that arrays still use."""

    def __init__(self) -> None:
        self._alive: weakref.WeakSet[Buffer] = weakref.WeakSet()

    def add(self, view: Buffer) -> None:
        self._alive.add(view)

    def require_none(self, name: str, of: Symmetric | None = None) -> None:
        """Raises InvalidArgument while views exist, of one allocation or of all."""
        count = sum(1 for view in self._alive if of is None or view.of is of)
        if count > 0:
            raise errors.InvalidArgument(
                f"{name}: {count} views of its memory are in use, allowed is none: delete these arrays first"
            )


class Buffer:
    """One PE's copy of symmetric memory. numpy and the calls of a world take it as an array."""

    def __init__(self, of: Symmetric, address: int) -> None:
        self.of = of
        self.shape = of.shape
        self._address = address

    @property
    def _tandem_memory(self) -> Memory:
        return Memory(self._address, self.shape, self.of.dtype, True, self.of.world.device == "gpu", self)

    def _interface(self, device: str) -> dict[str, Any]:
        if self.of.world.device != device:
            raise AttributeError(f"this buffer is memory of {self.of.world.device} PEs")
        kind = {"f": "f", "i": "i", "u": "u"}.get(self.of.dtype[0], "V")
        size = ITEM_BYTES[self.of.dtype]
        kind = "V" if self.of.dtype.startswith("float8") else kind
        return {
            "data": (self._address, False),
            "typestr": f"{'|' if size == 1 or kind == 'V' else '<'}{kind}{size}",
            "shape": self.shape,
            "version": 3,
        }

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("host")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface("gpu")

    def _array(self) -> Any:
        return self.torch() if self.of.world.device == "gpu" or "torch" in sys.modules else self.numpy()

    def __dlpack__(self, **options: Any) -> Any:
        """DLPack's capsule of this memory, by torch where it is imported or the memory is a GPU's, else by numpy."""
        return self._array().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._array().__dlpack_device__()
        return int(kind), int(number)

    def numpy(self) -> Any:
        """A numpy array of this memory, on CPUs. bfloat16 and fp8 need ml_dtypes."""
        from ._arrays import numpy_module

        array = numpy_module().asarray(self)
        if array.dtype.kind != "V":
            return array
        try:
            import ml_dtypes
        except ImportError as error:
            raise errors.MissingPackage(
                f"ml_dtypes is not installed, and {self.of.dtype} needs it: pip install ml_dtypes"
            ) from error
        return array.view(getattr(ml_dtypes, self.of.dtype))

    def torch(self) -> Any:
        """A torch tensor of this memory. On GPUs the world's has to be the current one."""
        import torch

        dtype = getattr(torch, self.of.dtype)
        if math.prod(self.shape) == 0:
            return torch.empty(self.shape, dtype=dtype)
        size = math.prod(self.shape) * ITEM_BYTES[self.of.dtype]
        gpu = torch.cuda.current_device() if self.of.world.device == "gpu" else None
        return bytes_tensor(self._address, size, gpu, self).view(dtype).reshape(self.shape)


class Symmetric:
    """Memory at the same place on every PE of a world. `World.empty`, `zeros` and `signals` make it."""

    def __init__(self, world: World, shape: tuple[int, ...], dtype: str) -> None:
        if dtype not in ITEM_BYTES:
            kind = errors.InvalidArgument if isinstance(dtype, str) else errors.InvalidType
            raise kind(f"dtype: {shown(dtype)} given, allowed is one of {', '.join(ITEM_BYTES)}")
        self.world = world
        self.shape = shape
        self.dtype = dtype
        self.bytes = math.prod(shape) * ITEM_BYTES[dtype]
        with world._lock:
            # An allocation without bytes has no address that peers could name.
            self._address: int | None = _allocated(world, max(self.bytes, 1))

    def __repr__(self) -> str:
        return f"<tandem symmetric memory: {self.dtype} of shape {self.shape}>"

    @property
    def local(self) -> Buffer:
        """This PE's copy."""
        return self._view(self._own())

    def get_buffer(self, pe: int) -> Buffer:
        """PE `pe`'s copy. Loads and stores through it need signals or barriers, as all shared memory does."""
        return self._view(self._on(pe))

    def put(self, x: Any, pe: int, *, offset: int = 0, stream: Any = None) -> None:
        """Copies `x` to PE `pe`'s copy, `offset` elements behind its beginning. Only this PE calls it."""
        given = self.world._input("x", x)
        if given.dtype != self.dtype:
            raise errors.InvalidType(f"x: {given.dtype} elements given, allowed are {self.dtype}")
        start = whole_option("offset", offset)
        if start < 0 or start + given.count > math.prod(self.shape):
            raise errors.InvalidArgument(
                f"offset: {start} with {given.count} elements given, allowed is a range within {math.prod(self.shape)}"
            )
        to = self._own() + start * ITEM_BYTES[self.dtype]
        self._enqueue("put", to, given.address, given.bytes, _pe(pe), stream=stream)

    def signal(self, value: int, pe: int, *, index: int = 0, stream: Any = None) -> None:
        """Writes a signal word on PE `pe`, after this PE's earlier puts in the stream are visible there."""
        self._enqueue("write_signal", self._word(index), _value(value), _pe(pe), stream=stream)

    def wait(self, value: int, *, index: int = 0, stream: Any = None) -> None:
        """Waits until this PE's signal word is at least `value`: on CPUs this call, on GPUs the stream."""
        self._enqueue("wait_signal", self._word(index), _value(value), stream=stream)

    def clear(self) -> None:
        """Sets this PE's copy to zeros. They are there when the call returns."""
        if self.bytes == 0:
            return
        if self.world.device == "gpu":
            import torch

            view = self.local.torch()
            view.zero_()
            torch.cuda.current_stream(view.device).synchronize()
        else:
            ctypes.memset(self._own(), 0, self.bytes)

    def free(self) -> None:
        """Frees the memory. All PEs call it. Raises InvalidArgument while arrays exist that view it."""
        if self._address is None:
            return
        self.world._views.require_none("memory", self)
        with self.world._lock:
            _c.call("free", self.world._handle, self._address)
        self._address = None

    def _own(self) -> int:
        if self._address is None or self.world._handle is None:
            raise errors.InvalidArgument("memory: freed memory given, allowed is memory of a world that is open")
        return self._address

    def _on(self, pe: int) -> int:
        with self.world._lock:
            found = ctypes.c_void_p()
            _c.call("peer_pointer", self.world._handle, self._own(), _pe(pe), ctypes.byref(found))
        assert found.value is not None
        return found.value

    def _view(self, address: int) -> Buffer:
        made = Buffer(self, address)
        self.world._views.add(made)
        return made

    def _word(self, index: int) -> int:
        if self.dtype != "uint64":
            raise errors.InvalidType(f"signal: memory of {self.dtype} given, allowed is memory of World.signals")
        number = whole_option("index", index)
        if not 0 <= number < math.prod(self.shape):
            raise errors.InvalidArgument(f"index: {number} given, allowed is 0 to {math.prod(self.shape) - 1}")
        return self._own() + 8 * number

    def _enqueue(self, name: str, *arguments: int, stream: Any) -> None:
        with self.world._lock:
            _c.call(name, self.world._handle, *arguments, self.world._stream(stream))
            self.world._wait()


class Registered(Symmetric):
    """Memory of an array that peers reach, too. `World.register` makes it. It keeps the array alive."""

    def __init__(self, world: World, given: Memory) -> None:
        self.world = world
        self.shape = given.shape
        self.dtype = given.dtype
        self.bytes = given.bytes
        self._owner = given.owner
        with world._lock:
            _c.call("register", world._handle, given.address, given.bytes)
        self._address = given.address

    def free(self) -> None:
        """Ends the registration. All PEs call it. Raises InvalidArgument while arrays exist that view the memory."""
        if self._address is None:
            return
        self.world._views.require_none("memory", self)
        with self.world._lock:
            _c.call("unregister", self.world._handle, self._address)
        self._address = self._owner = None


def _allocated(world: World, size: int) -> int:
    pointer = ctypes.c_void_p()
    _c.call("alloc", world._handle, size, ctypes.byref(pointer))
    assert pointer.value is not None
    return pointer.value


def _pe(value: object) -> int:
    number = whole_option("pe", value)
    if not 0 <= number < 2**31:
        raise errors.InvalidArgument(f"pe: {number} given, allowed is the number of a PE")
    return number


def _value(value: object) -> int:
    number = whole_option("value", value)
    if not 0 <= number < 2**64:
        raise errors.InvalidArgument(f"value: {number} given, allowed is 0 to 2**64 - 1")
    return number
