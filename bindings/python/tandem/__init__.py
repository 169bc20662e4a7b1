"""Tandem: communication and computation in one kernel.

    tandem.simulate     collectives and operators on a simulated machine
    tandem.check        races, hangs and wrong results under many schedules
    tandem.World        this process as one PE of a job: collectives and symmetric memory, on CPUs or GPUs
    tandem.torch        operators for PyTorch; needs torch
    tandem.preload_nccl lets PyTorch call Tandem in place of NCCL
    tandem.machines, tandem.algorithms, tandem.layers
                        what can be simulated

Importing it needs neither numpy nor a GPU. Errors derive from `tandem.Error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import simulate
from ._check import CheckResult, Finding, Mutant, Site, check, mutants
from ._lists import Algorithm, Layer, Machine, algorithms, layers, machines
from .errors import (
    CheckFailed,
    Deadlock,
    Error,
    Failure,
    InvalidArgument,
    InvalidType,
    MissingPackage,
    OutOfMemory,
    Timeout,
    Unsupported,
)

if TYPE_CHECKING:
    from ._ids import unique_id
    from ._nccl import preload_nccl
    from .symmetric import Buffer, Symmetric
    from .world import World

__all__ = [
    "Algorithm",
    "Buffer",
    "CheckFailed",
    "CheckResult",
    "Deadlock",
    "Error",
    "Failure",
    "Finding",
    "InvalidArgument",
    "InvalidType",
    "Layer",
    "Machine",
    "MissingPackage",
    "Mutant",
    "OutOfMemory",
    "Site",
    "Symmetric",
    "Timeout",
    "Unsupported",
    "World",
    "algorithms",
    "check",
    "layers",
    "machines",
    "mutants",
    "preload_nccl",
    "simulate",
    "unique_id",
]


# Modules of these names are imported when they are used: the import of the package has to be quick.
_LATER = {
    "Buffer": "symmetric",
    "Symmetric": "symmetric",
    "World": "world",
    "preload_nccl": "_nccl",
    "unique_id": "_ids",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    if name == "__version__":  # found only when asked for: it reads the installed package's files
        from importlib.metadata import version

        return version("tandem-gpu")
    raise AttributeError(f"module 'tandem' has no attribute '{name}'")
