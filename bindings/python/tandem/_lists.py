"""Names that can be simulated: machine models, algorithms and layers of models."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, overload

from . import errors
from ._library import call, shown


class Machine(NamedTuple):
    """A builtin machine model."""

    name: str
    description: str
    pes_per_node: int
    default_nodes: int
    """Nodes of a call that gives neither `nodes` nor `pes`."""
    max_nodes: int


class Algorithm(NamedTuple):
    """A value of the argument `algorithm`."""

    name: str
    summary: str
    one_node_only: bool
    """Whether it needs loads and stores between all PEs."""


class Layer(NamedTuple):
    """A value of the argument `model`: `n` outputs and `k` inputs."""

    name: str
    meaning: str
    n: int
    k: int


@functools.cache
def _list() -> dict[str, Any]:
    return call({"call": "list"})


def machines() -> list[Machine]:
    """The builtin machine models. docs/reference/machines.md describes their figures."""
    return [Machine(**one) for one in _list()["machines"]]


@overload
def algorithms(op: str) -> list[Algorithm]: ...
@overload
def algorithms(op: None = None) -> dict[str, list[Algorithm]]: ...
def algorithms(op: str | None = None) -> list[Algorithm] | dict[str, list[Algorithm]]:
    """The algorithms of a collective or the forms of an operator; without `op` those of all, by name."""
    known = {name: [Algorithm(**one) for one in rows] for name, rows in _list()["algorithms"].items()}
    if op is None:
        return known
    if not isinstance(op, str) or op not in known:
        raise errors.InvalidArgument(f"op: {shown(op)} given, allowed is one of {', '.join(known)}")
    return known[op]


def layers() -> list[Layer]:
    """Layers of models, as the argument `model` of operators takes them."""
    return [Layer(**one) for one in _list()["layers"]]
