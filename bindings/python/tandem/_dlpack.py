"""Tensors of torch over memory that torch does not own, by DLPack (dlpack.h of DLPack 0.8).

CUDA's array interface does not serve here. torch asks the driver which GPU has the memory, and copies a peer's memory
to the current GPU.
"""

from __future__ import annotations

import ctypes
from typing import Any

_CPU, _CUDA, _UNSIGNED = 1, 2, 1  # kDLCPU, kDLCUDA, kDLUInt


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # null: compact
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


# By address: each structure that torch still uses, with what it names and the owner of the memory.
_in_use: dict[int, tuple[Any, ...]] = {}
_deleter = _Deleter(lambda key, pop=_in_use.pop: pop(key, None))
# A tensor may outlive this module while the interpreter ends, so its deleter is never freed.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_deleter))

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def bytes_tensor(address: int, size: int, gpu: int | None, owner: object) -> Any:
    """A torch tensor of `size` bytes, of the CPU or of GPU `gpu`, which has to reach them. It keeps `owner` alive."""
    import torch

    shape = (ctypes.c_int64 * 1)(size)
    device = _Device(_CPU, 0) if gpu is None else _Device(_CUDA, gpu)
    tensor = _Tensor(address, device, 1, _Type(_UNSIGNED, 8, 1), shape, None, 0)
    managed = _Managed(tensor, None, _deleter)
    key = ctypes.addressof(managed)
    _in_use[key] = (managed, shape, owner)
    try:
        return torch.from_dlpack(_new_capsule(key, b"dltensor", None))
    except BaseException:
        _in_use.pop(key, None)
        raise
