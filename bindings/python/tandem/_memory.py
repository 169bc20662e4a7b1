"""The memory of arrays that worlds read and write: numpy's, DLPack's, CUDA's array interface, and buffers."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import errors
from ._c import TYPES
from ._library import shown

ITEM_BYTES = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
}
_KINDS = {"f": "float", "i": "int", "u": "uint"}
# Codes of struct formats, which buffers have.
_FORMATS = {"e": "float16", "f": "float32", "d": "float64", "c": "uint8"}
_SIGNED, _UNSIGNED = "bhilqn", "BHILQN"
# dlpack.h: DLDataTypeCode, with its number of bits.
_DLPACK = {
    (0, 8): "int8",
    (0, 32): "int32",
    (0, 64): "int64",
    (1, 8): "uint8",
    (1, 32): "uint32",
    (1, 64): "uint64",
    (2, 16): "float16",
    (2, 32): "float32",
    (2, 64): "float64",
    (4, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
}
_DL_CPU, _DL_CUDA = 1, 2


@dataclass(frozen=True)
class Memory:
    """Contiguous elements. `owner` keeps them alive."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    is_writable: bool
    is_gpu: bool
    owner: Any

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.count * ITEM_BYTES[self.dtype]


def memory_of(name: str, value: Any) -> Memory:
    """The memory of `value`. Raises InvalidType or InvalidArgument, which name the argument `name`."""
    try:
        found = _find(name, value)
    except errors.Error:
        raise
    except Exception as error:  # protocols of the caller's own may raise anything
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is an array ({_line(error)})") from error
    if found.dtype not in TYPES:
        raise errors.InvalidType(f"{name}: {found.dtype} elements given, allowed are {', '.join(TYPES)}")
    return found


def _find(name: str, value: Any) -> Memory:
    if isinstance(value, Memory):
        return value
    own = getattr(value, "_tandem_memory", None)
    if isinstance(own, Memory):
        return own
    if not isinstance(value, type):
        if hasattr(value, "__array_interface__"):
            return _of_interface(name, value, value.__array_interface__, False)
        # Before CUDA's interface, which has no bfloat16 and no fp8.
        if hasattr(value, "__dlpack__"):
            return _of_dlpack(name, value)
        if hasattr(value, "__cuda_array_interface__"):
            return _of_interface(name, value, value.__cuda_array_interface__, True)
    return _of_buffer(name, value)


def _of_interface(name: str, value: Any, interface: dict[str, Any], is_gpu: bool) -> Memory:
    address, is_read_only = interface["data"]
    shape, text = tuple(interface["shape"]), interface["typestr"]
    size = int(text[2:])
    dtype = getattr(getattr(value, "dtype", None), "name", "")
    if dtype not in TYPES:
        dtype = f"{_KINDS[text[1]]}{8 * size}" if text[1] in _KINDS else dtype or text
    if text[0] == ">":
        raise errors.InvalidType(f"{name}: elements in the other byte order given, allowed is that of this computer")
    _check_strides(name, shape, interface.get("strides"), size)
    return Memory(address or 0, shape, dtype, not is_read_only, is_gpu, value)


class _DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


def _of_dlpack(name: str, value: Any) -> Memory:
    device = int(value.__dlpack_device__()[0])
    if device not in (_DL_CPU, _DL_CUDA):
        raise errors.InvalidType(f"{name}: memory of DLPack device {device} given, allowed are CPU (1) and CUDA (2)")
    # The capsule frees the tensor when it dies, because nobody renames it.
    capsule = value.__dlpack__(stream=-1) if device == _DL_CUDA else value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DlTensor.from_address(pointer(capsule, b"dltensor"))
    dtype = _DLPACK.get((tensor.code, tensor.bits), f"DLPack type {tensor.code} of {tensor.bits} bits")
    if tensor.lanes != 1:
        dtype += f" x {tensor.lanes}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    _check_strides(name, shape, strides, 1)
    return Memory((tensor.data or 0) + tensor.offset, shape, dtype, True, device == _DL_CUDA, (value, capsule))


class _PyBuffer(ctypes.Structure):
    """Py_buffer. Its layout is part of Python's stable ABI since 3.11, and 3.10 has the same."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _of_buffer(name: str, value: Any) -> Memory:
    try:
        view = memoryview(value)
    except TypeError as error:
        raise errors.InvalidType(
            f"{name}: {shown(value)} given, allowed is an array: numpy's, or anything with DLPack or a buffer"
        ) from error
    if not view.c_contiguous:
        raise errors.InvalidArgument(f"{name}: an array with strides given, allowed is a contiguous one")
    code = view.format.lstrip("@=<")
    if code in _SIGNED or code in _UNSIGNED:
        dtype = f"{'int' if code in _SIGNED else 'uint'}{8 * view.itemsize}"
    else:
        dtype = _FORMATS.get(code, f"'{view.format}'")
    # Only the C interface gives the address of a buffer that is read-only.
    buffer = _PyBuffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
    get(view, ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    release = ctypes.pythonapi.PyBuffer_Release
    release.restype, release.argtypes = None, [ctypes.POINTER(_PyBuffer)]
    release(ctypes.byref(buffer))  # `view` holds the memory
    return Memory(address, tuple(view.shape or ()), dtype, not view.readonly, False, view)


def _check_strides(name: str, shape: Sequence[int], strides: Sequence[int] | None, item: int) -> None:
    if strides is None or math.prod(shape) == 0:
        return
    wanted = item
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != wanted:
            raise errors.InvalidArgument(f"{name}: an array with strides given, allowed is a contiguous one")
        wanted *= length


def result_like(value: Any, shape: tuple[int, ...]) -> Any:
    """A new array of `shape` of the same kind and type. Raises InvalidArgument where no such array can be made."""
    if hasattr(value, "new_empty"):  # torch
        return value.new_empty(shape)
    if type(value).__module__.split(".")[0] == "numpy":
        import numpy

        return numpy.empty(shape, value.dtype)
    raise errors.InvalidArgument(
        f"out: None given, allowed for x of type {type(value).__name__} is an array for the result"
    )


def _line(error: Exception) -> str:
    try:
        return " ".join(str(error).split())
    except Exception:  # likewise
        return type(error).__name__
