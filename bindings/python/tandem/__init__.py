"""Tandem: communication and computation in one kernel. This package has the simulator and the checker.

    tandem.simulate     collectives and operators on a simulated machine
    tandem.check        races, hangs and wrong results under many schedules
    tandem.machines, tandem.algorithms, tandem.layers
                        what can be simulated

Importing it needs neither numpy nor a GPU. Errors derive from `tandem.Error`.
"""

from __future__ import annotations

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

__all__ = [
    "Algorithm",
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
    "Timeout",
    "Unsupported",
    "algorithms",
    "check",
    "layers",
    "machines",
    "mutants",
    "simulate",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # found only when asked for: it reads the installed package's files
        from importlib.metadata import version

        return version("tandem-gpu")
    raise AttributeError(f"module 'tandem' has no attribute '{name}'")
