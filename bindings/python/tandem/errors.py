"""Errors of the package. Each derives from `Error` and from the builtin exception that fits."""

from __future__ import annotations


class Error(Exception):
    """Base class of everything that this package raises. The text names argument, value given, and values allowed."""


class InvalidArgument(Error, ValueError):
    """An argument has a value that is not allowed."""


class InvalidType(Error, TypeError):
    """An argument has a type that is not allowed."""


class Unsupported(Error, ValueError):
    """The call is valid, but not on this machine or for this algorithm."""


class OutOfMemory(Error, MemoryError):
    """Memory of this computer or of a simulated GPU is exhausted."""


class CheckFailed(Error):
    """A rule of the model was broken, such as a store to a PE that is not reachable."""


class Deadlock(Error, RuntimeError):
    """Nothing in the simulation can go on. The text says who waits for whom."""


class Timeout(Error, TimeoutError):
    """A bounded wait gave up."""


class Failure(Error, RuntimeError):
    """The call failed for another reason."""


class MissingPackage(Error, ImportError):
    """A package that this call needs is not installed."""
