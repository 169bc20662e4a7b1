"""Plans of overlapped operators on a world, which the operators of tandem.torch keep."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from . import _c

if TYPE_CHECKING:
    from .world import World


class Plan:
    """A plan for problems of up to `m` rows. All PEs make it."""

    def __init__(
        self, world: World, operator: str, m: int, ns: list[int], k: int, *, dtype: str, layout: str, activation: str
    ) -> None:
        self._world = world
        self.m = m
        problem = _c.Problem(m=m, n=sum(ns), k=k, type=_c.TYPES[dtype])
        problem.b_layout, problem.activation = _c.LAYOUTS[layout], _c.ACTIVATIONS[activation]
        if len(ns) > 1:
            problem.ns, problem.num_b = (ctypes.c_size_t * len(ns))(*ns), len(ns)
        with world._lock:
            self._handle = _c.created("plan_create", world._handle, _c.OPERATORS[operator], ctypes.byref(problem))
            world._plans.append(self)

    def run(self, m: int, a: int, b: list[int], c: list[int], bias: list[int], stream: int | None) -> None:
        """Runs `m` rows of matrices at these addresses. On CPUs it returns when the result is there."""
        run = _c.Run(m=m, a=a, b=_c.addresses(b), c=_c.addresses(c), bias=_c.addresses(bias))
        with self._world._lock:
            _c.call("plan_run_with", self._handle, ctypes.byref(run), stream)
            self._world._wait()

    def close(self) -> None:
        """Destroys the plan. All PEs call it."""
        with self._world._lock:
            self._world._plans.remove(self)
            _c.call("plan_destroy", self._handle)
