"""Collectives from PyTorch's dispatcher to the C API without Python between them (native/torch/operators.cpp).

The package has their library where it was built with the headers of PyTorch. TANDEM_TORCH_LIBRARY names another one,
and an empty text none. Where none loads, the kernels in Python do all the work.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import torch

from .. import _c, errors
from .._library import FOLDER
from . import _groups

_CALLED = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "synchronize")
_NUMBERS = {name: number for number, name in enumerate(_CALLED[:-1])}


def _load() -> ctypes.CDLL | None:
    path = os.environ.get("TANDEM_TORCH_LIBRARY", str(FOLDER / "lib" / "libtandem_torch.so"))
    if not os.path.exists(path):
        return None
    try:
        library = ctypes.CDLL(path)  # registers its operator
    except OSError:  # PyTorch before 2.10 lacks functions that it needs
        return None
    library.tandem_torch_status.restype = ctypes.c_int
    library.tandem_torch_use.restype = None
    return library


_library = _load()
_operator = None if _library is None else torch.ops.tandem._collective.default
IS_LOADED = _library is not None
"""Whether collectives need no Python between dispatcher and C API."""


@functools.cache
def _use(library: ctypes.CDLL) -> None:
    """Gives it the functions of the C API, which the first world loads."""
    addresses = [ctypes.cast(_c.function(name), ctypes.c_void_p).value for name in _CALLED]
    library.tandem_torch_use((ctypes.c_void_p * len(addresses))(*addresses))


def collective(name: str, x: torch.Tensor, type_code: int, group: str, operation: int = 0) -> torch.Tensor | None:
    """The result of a collective whose arguments were checked, or None where the caller has to do it in Python."""
    if _library is None or _operator is None or not x.is_contiguous():
        return None
    _use(_library)
    world = _groups.world_for(group, x.device.type).world
    with world._lock:
        stream = _groups.stream_of(x) or 0
        code = world.pes << 24 | _NUMBERS[name] << 16 | operation << 8 | type_code
        out = _operator(x, code, world._handle, stream)
        if out is None:
            raise _c.error_of(_library.tandem_torch_status()) or errors.Failure(f"tandem_{name}: no result")
    return out
