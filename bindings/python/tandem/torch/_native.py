"""Operators from PyTorch's dispatcher to the C API without Python between them (native/torch).

The package has their library where it was built with the headers of PyTorch. TANDEM_TORCH_LIBRARY names another one,
which has to load, and an empty text none. Without a library the kernels in Python do all the work.
"""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from .. import _c, errors
from .._library import FOLDER, shown
from . import _groups

# In the order of struct Library (native/torch/call.h).
_CALLED = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "plan_run_with", "synchronize")
_NUMBERS = {name: number for number, name in enumerate(_CALLED[:4])}
_fragment = torch.library.Library("tandem", "FRAGMENT")
_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
_current_device = getattr(torch._C, "_cuda_getDevice", None)


def _load() -> ctypes.CDLL | None:
    """The library, with its operators registered. Raises InvalidArgument where the variable names no such library."""
    given = os.environ.get("TANDEM_TORCH_LIBRARY")
    path = str(FOLDER / "lib" / "libtandem_torch.so") if given is None else given
    if given == "" or (given is None and not os.path.exists(path)):
        return None
    try:
        library = ctypes.CDLL(os.path.abspath(path))  # registers its operators
        library.tandem_torch_status.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        if given is None:  # PyTorch before 2.10 lacks functions that it needs
            return None
        raise errors.InvalidArgument(
            f"TANDEM_TORCH_LIBRARY: {shown(given)} given, allowed is a libtandem_torch.so that loads, or an empty text"
            f" ({' '.join(str(error).split())})"
        ) from error
    library.tandem_torch_use.restype = None
    library.tandem_torch_plans_create.restype = ctypes.c_void_p
    library.tandem_torch_plans_create.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.tandem_torch_plans_destroy.restype = None
    library.tandem_torch_plans_destroy.argtypes = [ctypes.c_void_p]
    library.tandem_torch_plans_keep.restype = None
    library.tandem_torch_plans_keep.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.c_int64,
    ]
    return library


_library = _load()


def _called(name: str) -> Any:
    """An operator of the library, without the function in Python around it where PyTorch has it so."""
    if _library is None:
        return None
    operator = getattr(torch.ops.tandem, name).default
    # Its callers record gradients, and what PyTorch does for an operator that does not costs time.
    _fragment.impl(name, torch.library.fallthrough_kernel, "Autograd")
    return getattr(operator, "_op", operator)


_operator = _called("_collective")
_products = _called("_products")
IS_LOADED = _library is not None
"""Whether operators need no Python between dispatcher and C API."""


@functools.cache
def _use(library: Any) -> None:
    """Gives it the functions of the C API, which the first world loads."""
    addresses = [ctypes.cast(_c.function(name), ctypes.c_void_p).value for name in _CALLED]
    library.tandem_torch_use((ctypes.c_void_p * len(addresses))(*addresses))


def collective(
    name: str, x: torch.Tensor, type_code: int | None, group: str, operation: int | None = 0, has_parts: bool = False
) -> torch.Tensor | None:
    """The result of a collective, of arguments that need not have been checked.

    None: the caller has to do it in Python, which checks arguments and makes the world.
    """
    if _operator is None or type_code is None or operation is None or not x.is_contiguous():
        return None
    found = _groups.existing(group, "cuda" if x.is_cuda else "cpu")
    if found is None:
        return None
    world = found.world
    if has_parts and (x.dim() == 0 or x.shape[0] % world.pes != 0):
        return None
    _use(_library)
    code = world.pes << 24 | _NUMBERS[name] << 16 | operation << 8 | type_code
    with world._lock:
        if world._handle is None:
            return None
        out = _operator(x, code, world._handle, _groups.stream_of(x) or 0)
        if out is None:
            status = _library.tandem_torch_status()  # type: ignore[union-attr]
            raise _c.error_of(status) or errors.Failure(f"tandem_{name}: no result")
    return out


def keep_plan(found: _groups.GroupWorld, plan: Any, problem: Sequence[int]) -> None:
    """Lets `products` run a plan. The caller holds the world's lock.

    `problem` has the operator, the type, the layout and the activation. For fp8 it has the type of results, the kinds of
    scales and whether accumulation is fast. The depth and the columns of each weight follow.
    """
    if _library is None:
        return
    _use(_library)
    if found.native is None:
        found.native = _library.tandem_torch_plans_create(found.world._handle, found.world.pes)
        weakref.finalize(found, _library.tandem_torch_plans_destroy, found.native).atexit = False
    numbers = (ctypes.c_int64 * len(problem))(*problem)
    _library.tandem_torch_plans_keep(found.native, plan._handle, plan.m, numbers, len(problem))


def products(
    operator: int,
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    activation: int | None,
    group: str,
    keeps: bool = False,
    scales: Sequence[torch.Tensor] = (),
    out_type: int = 0,
    fast: bool = False,
) -> list[torch.Tensor] | None:
    """The results of an overlapped operator, of arguments that need not have been checked.

    Products in fp8 have the scale of x, those of the weights, the type of the results, and may have fast accumulation.
    None: the caller has to do it in Python, which checks arguments, makes plans, and notes plans that a graph holds.
    """
    if _products is None or activation is None or (biases and len(biases) != len(weights)):
        return None
    if not x.is_cuda:
        device = "cpu"
    elif _capturing is None or _current_device is None or _current_device() != x.get_device() or _capturing():
        return None
    else:
        device = "cuda"
    found = _groups.existing(group, device)
    if found is None or found.native is None:
        return None
    code = len(weights) << 32 | out_type << 16 | activation << 8 | operator
    code |= bool(fast) << 27 | bool(scales) << 26 | bool(biases) << 25 | keeps << 24
    with found.world._lock:
        if found.world._handle is None:
            return None
        results = _products(x, [*weights, *biases, *scales], code, found.native, _groups.stream_of(x) or 0)
        error = None if results else _c.error_of(_library.tandem_torch_status())  # type: ignore[union-attr]
    if error is not None:
        raise error
    return results or None
