"""The C API by ctypes, which worlds call. The first world loads the library.

The package has the C API for CPUs in libtandem_sim.so, and with its GPU part for both in libtandem_c.so. TANDEM_LIBRARY
names another library.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from . import _structs, errors
from ._library import FOLDER

VERSION = "0.1"
"""The version of include/tandem.h that this file was written for."""

UNIQUE_ID_BYTES = 128
_ERRORS: dict[int, type[errors.Error]] = {
    1: errors.InvalidArgument,
    2: errors.Unsupported,
    3: errors.OutOfMemory,
    4: errors.Timeout,
    5: errors.Failure,
}
DEVICES = {"gpu": 1, "host": 2}
OPERATIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4}
OPERATORS = {"all_gather_gemm": 0, "gemm_reduce_scatter": 1, "gemm_all_reduce": 2}
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "silu": 3}
LAYOUTS = {"NxK": 0, "KxN": 1}
NORMS = {"none": 0, "rms": 1, "layer": 2}
QUANTISATIONS = {"none": 0, "static": 1, "row": 2, "128": 3}
WIRES = {"fp8": 1, "int8": 2}
EXPERT_LAYOUTS = {"sorted": 0, "by_expert": 1, "in_place": 2}
EXPERT_WIRES = {"type": 0, "quantised": 1, "given": 2}
EXPERT_FORMS = {"rule": 0, "sequential": 1, "overlapped": 2}
GATED = {"swiglu": 4, "geglu": 5}
TYPES = {
    "float32": 1,
    "float16": 2,
    "bfloat16": 3,
    "float8_e4m3fn": 4,
    "float8_e5m2": 5,
    "int8": 6,
    "uint8": 7,
    "int32": 8,
    "uint32": 9,
    "int64": 10,
    "uint64": 11,
    "float64": 12,
}

_int, _size, _address = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
_out = ctypes.POINTER(_address)
_options = ctypes.POINTER(_structs.Options)
_messages = ctypes.POINTER(_structs.Message)
_MOVE = [_address, _address, _address, _size, _int]  # world, in, out, count, type
_ARGUMENTS: dict[str, list[Any]] = {
    "unique_id_create": [_address, ctypes.c_char_p],
    "world_create": [_out, _address, _int, _int, _options],
    "world_from_environment": [_out, _options],
    "world_destroy": [_address],
    "world_split": [_out, _address, _int, _int, _options],
    "world_abort": [_address, ctypes.c_char_p],
    "world_error": [_address],
    "device_of": [_address],
    "pe": [_address],
    "num_pes": [_address],
    "alloc": [_address, _size, _out],
    "free": [_address, _address],
    "register": [_address, _address, _size],
    "unregister": [_address, _address],
    "peer_pointer": [_address, _address, _int, _out],
    "put": [_address, _address, _address, _size, _int, _address],
    "write_signal": [_address, _address, ctypes.c_uint64, _int, _address],
    "wait_signal": [_address, _address, ctypes.c_uint64, _address],
    "all_reduce": [*_MOVE, _int, _address],
    "reduce": [*_MOVE, _int, _int, _address],
    "reduce_scatter": [*_MOVE, _int, _address],
    "all_gather": [*_MOVE, _address],
    "all_to_all": [*_MOVE, _address],
    "broadcast": [*_MOVE, _int, _address],
    "gather": [*_MOVE, _int, _address],
    "scatter": [*_MOVE, _int, _address],
    "all_reduce_quantised": [*_MOVE, _int, _address],
    "reduce_scatter_quantised": [*_MOVE, _int, _address],
    "all_gather_quantised": [*_MOVE, _int, _address],
    "send_recv": [_address, _messages, _size, _messages, _size, _address],
    "plan_create": [_out, _address, _int, ctypes.POINTER(_structs.Problem)],
    "plan_run_with": [_address, ctypes.POINTER(_structs.Run), _address],
    "plan_destroy": [_address],
    "norm_plan_create": [_out, _address, ctypes.POINTER(_structs.NormProblem)],
    "norm_plan_run": [_address, ctypes.POINTER(_structs.NormRun), _address],
    "norm_plan_destroy": [_address],
    "heads_plan_create": [_out, _address, ctypes.POINTER(_structs.HeadsProblem)],
    "heads_plan_run": [_address, ctypes.POINTER(_structs.HeadsRun), _address],
    "heads_plan_destroy": [_address],
    "exchange_plan_create": [_out, _address, ctypes.POINTER(_structs.ExchangeProblem)],
    "exchange_plan_run": [_address, ctypes.POINTER(_structs.ExchangeRun), _address],
    "exchange_plan_destroy": [_address],
    "experts_create": [_out, _address, ctypes.POINTER(_structs.ExpertsProblem)],
    "experts_sizes_of": [ctypes.POINTER(_structs.ExpertsProblem), _int, ctypes.POINTER(_structs.ExpertsSizes)],
    "experts_route": [_address, ctypes.POINTER(_structs.ExpertsChoices), _address],
    "experts_dispatch": [_address, ctypes.POINTER(_structs.ExpertsRows), _address],
    "experts_route_and_dispatch": [
        _address,
        ctypes.POINTER(_structs.ExpertsChoices),
        ctypes.POINTER(_structs.ExpertsRows),
        _address,
    ],
    "experts_combine": [_address, ctypes.POINTER(_structs.ExpertsSums), _address],
    "experts_destroy": [_address],
    "expert_gemms_create": [_out, _address, ctypes.POINTER(_structs.ExpertGemmsProblem)],
    "expert_gemms_dispatch": [_address, ctypes.POINTER(_structs.DispatchGemm), _address],
    "expert_gemms_combine": [_address, ctypes.POINTER(_structs.GemmCombine), _address],
    "expert_gemms_destroy": [_address],
    "synchronize": [_address, _address],
    "barrier": [_address],
    "barrier_on": [_address, _address],
}


def path() -> str:
    """The path of the library: that of the environment, or the package's own."""
    given = os.environ.get("TANDEM_LIBRARY")
    if given:
        return given
    with_gpus = os.path.join(FOLDER, "lib", "libtandem_c.so")
    return with_gpus if os.path.exists(with_gpus) else os.path.join(FOLDER, "lib", "libtandem_sim.so")


@functools.cache
def library() -> ctypes.CDLL:
    """The library. Raises Failure where it does not load."""
    try:
        loaded = ctypes.CDLL(path())
    except OSError as error:
        raise errors.Failure(f"the library of worlds does not load: {error}") from error
    loaded.tandem_version.restype = ctypes.c_char_p
    loaded.tandem_last_error.restype = ctypes.c_char_p
    version = loaded.tandem_version().decode()
    if version.rsplit(".", 1)[0] != VERSION:
        raise errors.Failure(f"{path()} has version {version}, this package needs {VERSION}: install it again")
    for name, arguments in _ARGUMENTS.items():
        function = getattr(loaded, f"tandem_{name}")
        function.restype = ctypes.c_int
        function.argtypes = arguments
    return loaded


def error_of(status: int) -> errors.Error | None:
    """The error of this thread's last call, or None if it succeeded."""
    if status == 0:
        return None
    text = library().tandem_last_error().decode(errors="replace")
    return _ERRORS.get(status, errors.Failure)(text)


@functools.cache
def function(name: str) -> Any:
    """tandem_NAME."""
    return getattr(library(), f"tandem_{name}")


def call(name: str, *arguments: Any) -> None:
    """Calls tandem_NAME. The GIL is released meanwhile. Raises the library's errors."""
    status = function(name)(*arguments)
    if status != 0:
        raise error_of(status) or errors.Failure(f"tandem_{name}: status {status}")


def created(name: str, *arguments: Any) -> int | None:
    """Calls tandem_NAME, whose first argument receives a handle. Returns the handle, or None for NULL."""
    handle = ctypes.c_void_p()
    call(name, ctypes.byref(handle), *arguments)
    return handle.value


def addresses(values: list[int]) -> Any:
    """A C array of addresses, or NULL for an empty list."""
    return (ctypes.c_void_p * len(values))(*values) if values else None
