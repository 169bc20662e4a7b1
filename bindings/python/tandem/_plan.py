"""Plans on a world, which the operators of tandem.torch keep."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from . import _c, _structs

if TYPE_CHECKING:
    from .world import World


class Plan:
    """A plan that all PEs make. `kind` names its functions of the C API."""

    kind: str

    def __init__(self, world: World, *arguments: Any) -> None:
        self._world = world
        self.is_captured = False
        """Whether a captured graph may hold the plan, which then lives as long as its world."""
        with world._lock:
            self._handle = _c.created(f"{self.kind}_create", world._handle, *arguments)
            world._plans.append(self)

    def close(self) -> None:
        """Destroys the plan. All PEs call it. None of its runs may be pending."""
        with self._world._lock:
            self._world._plans.remove(self)
            self.destroy()

    def destroy(self) -> None:
        """Destroys the handle alone, for a world that ends."""
        _c.call(f"{self.kind}_destroy", self._handle)


class OperatorPlan(Plan):
    """A plan of an overlapped operator for problems of up to `m` rows. `options` are fields of tandem_problem.

    Plans of a world share memory for data in flight, because their runs follow each other.
    """

    kind = "plan"

    def __init__(self, world: World, operator: str, m: int, ns: list[int], k: int, **options: int) -> None:
        self.m = m
        problem = _structs.Problem(m=m, n=sum(ns), k=k, shares_memory=1, **options)
        if len(ns) > 1:
            problem.ns, problem.num_b = (ctypes.c_size_t * len(ns))(*ns), len(ns)
        super().__init__(world, _c.OPERATORS[operator], ctypes.byref(problem))

    def run(self, m: int, stream: int | None, **matrices: Any) -> None:
        """Runs `m` rows with these fields of tandem_run. On CPUs it returns when the result is there."""
        run = _structs.Run(m=m, **matrices)
        with self._world._lock:
            _c.call("plan_run_with", self._handle, ctypes.byref(run), stream)
            self._world._wait()


class LayerPlan(Plan):
    """A plan of a layer's calls. Problem and calls hold the fields of structures of tandem.h."""

    problem: type[ctypes.Structure]

    def __init__(self, world: World, **problem: Any) -> None:
        super().__init__(world, ctypes.byref(self.problem(**problem)))

    def _enqueue(self, name: str, arguments: ctypes.Structure, stream: int | None) -> None:
        with self._world._lock:
            _c.call(name, self._handle, ctypes.byref(arguments), stream)
            self._world._wait()


class OneCallPlan(LayerPlan):
    """A plan with one kind of call."""

    call: type[ctypes.Structure]

    def run(self, stream: int | None, **fields: Any) -> None:
        """Runs it with these fields. On CPUs it returns when the result is there."""
        self._enqueue(f"{self.kind}_run", self.call(**fields), stream)


class NormPlan(OneCallPlan):
    """A plan of all_reduce_norm."""

    kind, problem, call = "norm_plan", _structs.NormProblem, _structs.NormRun


class HeadsPlan(OneCallPlan):
    """A plan of merge_heads."""

    kind, problem, call = "heads_plan", _structs.HeadsProblem, _structs.HeadsRun


class ExchangePlan(OneCallPlan):
    """A plan of exchange_heads, with symmetric memory for its results."""

    kind, problem, call = "exchange_plan", _structs.ExchangeProblem, _structs.ExchangeRun

    def __init__(self, world: World, max_rows: int, segments: tuple[int, ...], dtype: str, to_rows: bool) -> None:
        self.max_rows = max_rows
        self.copied: Any = None  # an event of a GPU behind the copies of the last results
        count = len(segments)
        super().__init__(
            world,
            max_rows=max_rows,
            segments=(ctypes.c_size_t * count)(*segments),
            num_tensors=count,
            type=_c.TYPES[dtype],
            to_rows=int(to_rows),
        )
        self.results = [world.empty(max_rows * world.pes * segment, dtype) for segment in segments]

    def exchange(self, rows: int, given: list[int], stream: int | None) -> None:
        """Runs it from matrices at these addresses to the begin of `results`."""
        results = [one.local._tandem_memory.address for one in self.results]
        self.run(stream, rows=rows, in_=_c.addresses(given), out=_c.addresses(results))

    def close(self) -> None:
        """Destroys the plan and frees its memory. All PEs call it."""
        super().close()
        for one in self.results:
            one.free()


class ExpertsPlan(LayerPlan):
    """A plan of a layer with experts."""

    kind, problem = "experts", _structs.ExpertsProblem

    def route(self, stream: int | None, **choices: Any) -> None:
        """Makes a routing, with the fields of tandem_experts_choices."""
        self._enqueue("experts_route", _structs.ExpertsChoices(**choices), stream)

    def dispatch(self, stream: int | None, **rows: Any) -> None:
        """Moves rows to experts, with the fields of tandem_experts_rows."""
        self._enqueue("experts_dispatch", _structs.ExpertsRows(**rows), stream)

    def route_and_dispatch(self, stream: int | None, choices: dict[str, Any], rows: dict[str, Any]) -> None:
        """Does both."""
        both = ctypes.byref(_structs.ExpertsChoices(**choices)), ctypes.byref(_structs.ExpertsRows(**rows))
        with self._world._lock:
            _c.call("experts_route_and_dispatch", self._handle, *both, stream)
            self._world._wait()

    def combine(self, stream: int | None, **sums: Any) -> None:
        """Sums the experts' rows, with the fields of tandem_experts_sums."""
        self._enqueue("experts_combine", _structs.ExpertsSums(**sums), stream)


class ExpertGemmsPlan(LayerPlan):
    """A plan of the products of a layer with experts."""

    kind, problem = "expert_gemms", _structs.ExpertGemmsProblem

    def dispatch(self, stream: int | None, **call: Any) -> None:
        """Moves rows to experts and multiplies them, with the fields of tandem_dispatch_gemm."""
        self._enqueue("expert_gemms_dispatch", _structs.DispatchGemm(**call), stream)

    def combine(self, stream: int | None, **call: Any) -> None:
        """Multiplies rows and sums them at their tokens, with the fields of tandem_gemm_combine."""
        self._enqueue("expert_gemms_combine", _structs.GemmCombine(**call), stream)
