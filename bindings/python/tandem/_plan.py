"""Plans on a world, which the operators of tandem.torch keep."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from . import _c

if TYPE_CHECKING:
    from .world import World


class Plan:
    """A plan that all PEs make. `kind` names its functions of the C API."""

    kind: str

    def __init__(self, world: World, *arguments: Any) -> None:
        self._world = world
        with world._lock:
            self._handle = _c.created(f"{self.kind}_create", world._handle, *arguments)
            world._plans.append(self)

    def close(self) -> None:
        """Destroys the plan. All PEs call it."""
        with self._world._lock:
            self._world._plans.remove(self)
            self.destroy()

    def destroy(self) -> None:
        """Destroys the handle alone, for a world that ends."""
        _c.call(f"{self.kind}_destroy", self._handle)


class OperatorPlan(Plan):
    """A plan of an overlapped operator for problems of up to `m` rows."""

    kind = "plan"

    def __init__(
        self, world: World, operator: str, m: int, ns: list[int], k: int, *, dtype: str, layout: str, activation: str
    ) -> None:
        self.m = m
        problem = _c.Problem(m=m, n=sum(ns), k=k, type=_c.TYPES[dtype])
        problem.b_layout, problem.activation = _c.LAYOUTS[layout], _c.ACTIVATIONS[activation]
        if len(ns) > 1:
            problem.ns, problem.num_b = (ctypes.c_size_t * len(ns))(*ns), len(ns)
        super().__init__(world, _c.OPERATORS[operator], ctypes.byref(problem))

    def run(
        self, m: int, a: int, b: list[int], c: list[int], bias: list[int], gathered: int | None, stream: int | None
    ) -> None:
        """Runs `m` rows of matrices at these addresses. On CPUs it returns when the result is there."""
        run = _c.Run(m=m, a=a, b=_c.addresses(b), c=_c.addresses(c), bias=_c.addresses(bias), gathered=gathered)
        with self._world._lock:
            _c.call("plan_run_with", self._handle, ctypes.byref(run), stream)
            self._world._wait()


class NormPlan(Plan):
    """A plan of all_reduce_norm. `problem` holds the fields of tandem_norm_problem."""

    kind = "norm_plan"

    def __init__(self, world: World, **problem: Any) -> None:
        super().__init__(world, ctypes.byref(_c.NormProblem(**problem, any_memory=1)))

    def run(self, stream: int | None, **run: Any) -> None:
        """Runs it with the fields of tandem_norm_run. On CPUs it returns when the result is there."""
        with self._world._lock:
            _c.call("norm_plan_run", self._handle, ctypes.byref(_c.NormRun(**run)), stream)
            self._world._wait()
