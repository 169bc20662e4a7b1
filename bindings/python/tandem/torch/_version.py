"""Whether PyTorch's modules and libraries in this process are of one version."""

from __future__ import annotations

import ctypes
import re

import torch

from .. import errors

_LIBRARY = "libtorch_cpu.so"


def _loaded() -> list[str]:
    """The paths of PyTorch's libraries in this process, or none where the system does not list them."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            lines = [line.split(maxsplit=5) for line in maps if _LIBRARY in line]
    except OSError:
        return []
    paths = (line[5].strip() for line in lines if len(line) == 6)
    return sorted({path for path in paths if path.endswith(f"/{_LIBRARY}")})


def _version_of(path: str) -> str | None:
    """The version of a library that is loaded, such as 2.11.0, or None where it has no function for it."""
    try:
        function = ctypes.CDLL(path).aoti_torch_abi_version
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_uint64
    number = function()
    return ".".join(str(number >> bits & 0xFF) for bits in (56, 48, 40))


def check_torch() -> None:
    """Raises Failure where operators of one version of PyTorch would meet tensors of another one."""
    paths = _loaded()
    if len(paths) > 1:
        raise errors.Failure(f"torch: {' and '.join(paths)} given in one process, allowed is one of them")
    own = re.match(r"\d+\.\d+\.\d+", torch.__version__)
    library = _version_of(paths[0]) if paths and own else None
    if own and library not in (None, own[0]):
        raise errors.Failure(f"torch: modules of version {own[0]} given, allowed is {library}, as {paths[0]}")
