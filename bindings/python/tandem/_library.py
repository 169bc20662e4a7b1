"""The simulator's shared library, by ctypes. It is loaded by the first call."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import errors

INTERFACE = 1
"""The version of native/tandem_sim.h that this file was written for."""

FOLDER = Path(__file__).resolve().parent
_BY_KIND: dict[int, type[errors.Error]] = {
    1: errors.InvalidArgument,
    2: errors.InvalidType,
    3: errors.Unsupported,
    4: errors.OutOfMemory,
    5: errors.CheckFailed,
    6: errors.Deadlock,
    7: errors.Timeout,
    8: errors.Failure,
}


class Array(ctypes.Structure):
    """tandem_sim_array: the memory of a numpy array."""

    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


@functools.cache
def _load() -> ctypes.CDLL:
    path = FOLDER / "lib" / "libtandem_sim.so"
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise errors.Failure(f"the simulator's library does not load: {error}") from error
    library.tandem_sim_interface.restype = ctypes.c_int
    found = library.tandem_sim_interface()
    if found != INTERFACE:
        raise errors.Failure(f"{path} has interface {found}, this package needs {INTERFACE}: install it again")
    arrays = ctypes.POINTER(Array)
    library.tandem_sim_call.restype = ctypes.c_void_p
    library.tandem_sim_call.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        arrays,
        ctypes.c_size_t,
        arrays,
        ctypes.c_size_t,
    ]
    library.tandem_sim_kind_of.restype = ctypes.c_int
    library.tandem_sim_kind_of.argtypes = [ctypes.c_void_p]
    library.tandem_sim_text.restype = ctypes.c_char_p
    library.tandem_sim_text.argtypes = [ctypes.c_void_p]
    library.tandem_sim_free.restype = None
    library.tandem_sim_free.argtypes = [ctypes.c_void_p]
    return library


def shown(value: object) -> str:
    """A short text of `value` for messages, on one line."""
    try:
        text = repr(value)
    except Exception:  # a repr of the caller's own may raise anything
        text = object.__repr__(value)
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "..."


def text_option(name: str, value: object) -> str:
    """`value` as text that the library takes. Paths are allowed."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidArgument(f"{name}: {shown(value)} given, allowed is valid Unicode") from error
    if not value:
        raise errors.InvalidArgument(f"{name}: '' given, allowed is a string that is not empty")
    if "\0" in value:
        raise errors.InvalidArgument(f"{name}: {shown(value)} given, allowed is text without NUL")
    return value


def whole_option(name: str, value: object) -> int:
    """`value` as an int. numpy's integers are allowed, booleans are not."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except Exception as error:  # an __index__ of the caller's own may raise anything
            raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is a whole number") from error
    raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is a whole number")


def number_option(name: str, value: object) -> float:
    """`value` as a finite float."""
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except Exception as error:  # a __float__ of the caller's own may raise anything
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is a number") from error
    if not math.isfinite(number):
        raise errors.InvalidArgument(f"{name}: {shown(value)} given, allowed is a finite number")
    return number


def numbers_option(name: str, value: object) -> list[float]:
    """`value` as a list of finite numbers."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is a list of numbers")
    return [number_option(f"{name}[{i}]", one) for i, one in enumerate(value)]


def call(request: Mapping[str, Any], inputs: Sequence[Array] = (), outputs: Sequence[Array] = ()) -> dict[str, Any]:
    """Carries out a request and returns the answer. The GIL is released meanwhile. Raises the library's errors."""
    import json  # not for the import of the package, which has to be quick

    library = _load()
    text = json.dumps({key: value for key, value in request.items() if value is not None}).encode()
    answer = library.tandem_sim_call(
        text,
        len(text),
        (Array * len(inputs))(*inputs) if inputs else None,
        len(inputs),
        (Array * len(outputs))(*outputs) if outputs else None,
        len(outputs),
    )
    try:
        kind = library.tandem_sim_kind_of(answer)
        message = library.tandem_sim_text(answer).decode(errors="replace")
    finally:
        library.tandem_sim_free(answer)
    if kind != 0:
        raise _BY_KIND.get(kind, errors.Failure)(message or "out of memory")
    result: dict[str, Any] = json.loads(message)
    return result
