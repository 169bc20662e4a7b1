"""Collectives and operators on a simulated machine: results of real data, and predicted times.

    import numpy, tandem
    r = tandem.simulate.all_reduce([numpy.ones(1024, "f4")] * 8, machine="h200x8")
    r.results[0], r.time_us, r.algorithm, r.bound_by, r.timeline

Every collective takes either `arrays` or `bytes`:

* `arrays` has one array per PE: a list, or one array whose first axis is the PE. Types are float32, float16, float64,
  integers, and those of ml_dtypes. bfloat16 is also taken as uint16 bits with dtype="bf16". Inputs never change.
* `bytes` is the size of the larger buffer of a PE, such as 65536 or "16M", and `pes` the number of PEs. Such a call
  has no data, and its time is the same.

Further arguments of all calls:

* `machine`: name of a builtin model (`tandem.machines()`) or path of a JSON file. Default: h200x4, for more than four
  PEs h200x8.
* `nodes`, `pes`, `pes_per_node`: size of the machine. `pes_per_node` splits a node into virtual ones.
* `algorithm`, `blocks`: what the library chooses where they are left out (`tandem.algorithms(op)` lists the names).
* `seed`: permutes simultaneous events. The same seed gives the same run.
* `selection`: path of a selection table that takes precedence over the builtin ones.

No Python code runs inside the simulation, and the GIL is released during a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._collectives import run_collective as _run
from ._library import shown
from ._lists import algorithms as _algorithms
from ._operators import run_operator as _run_operator
from ._results import CollectiveResult, OperatorResult, Result, Share, Timeline
from ._sweep import Table
from ._sweep import run_all as _run_all

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ._collectives import Arrays

    _Path = str | os.PathLike[str]

__all__ = [
    "CollectiveResult",
    "OperatorResult",
    "Result",
    "Share",
    "Table",
    "Timeline",
    "all_gather",
    "all_gather_gemm",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "exchange",
    "gather",
    "gemm_all_reduce",
    "gemm_reduce_scatter",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send_recv",
    "sweep",
]


# The functions below have no variables of their own, so `locals()` holds their arguments by name.


def all_reduce(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    op: str = "sum",
    scales: Sequence[float] | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Every PE gets the reduction of all arrays.

    Results have the shape of the input.

    `op` is sum, prod, min, max, avg or premul_sum. With premul_sum each PE's values are first multiplied by its entry
    of `scales` (default: 1). Integers wrap, and the order of the reduction is the algorithm's.
    """
    return _run("all_reduce", **locals())


def all_gather(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Every PE gets the arrays of all PEs, joined along the first axis in PE order."""
    return _run("all_gather", **locals())


def reduce_scatter(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    op: str = "sum",
    scales: Sequence[float] | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Every PE gets its part of the reduction of all arrays.

    The first axis is a multiple of the number of PEs, and is cut into equal parts in PE order.

    `op` is sum, prod, min, max, avg or premul_sum. With premul_sum each PE's values are first multiplied by its entry
    of `scales` (default: 1). Integers wrap, and the order of the reduction is the algorithm's.
    """
    return _run("reduce_scatter", **locals())


def all_to_all(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Part j of PE i's array becomes part i of PE j's result.

    The first axis is a multiple of the number of PEs, and is cut into equal parts in PE order.
    """
    return _run("all_to_all", **locals())


def broadcast(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    root: int = 0,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Every PE gets the array of `root`. Other entries of `arrays` may be None."""
    return _run("broadcast", **locals())


def reduce(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    op: str = "sum",
    scales: Sequence[float] | None = None,
    root: int = 0,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """`root` gets the reduction of all arrays; the other results are None.

    `op` is sum, prod, min, max, avg or premul_sum. With premul_sum each PE's values are first multiplied by its entry
    of `scales` (default: 1). Integers wrap, and the order of the reduction is the algorithm's.
    """
    return _run("reduce", **locals())


def gather(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    root: int = 0,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """`root` gets the arrays of all PEs, joined along the first axis in PE order; the other results are None."""
    return _run("gather", **locals())


def scatter(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    root: int = 0,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Every PE gets its part of the array of `root`. Other entries of `arrays` may be None.

    The first axis is a multiple of the number of PEs, and is cut into equal parts in PE order.
    """
    return _run("scatter", **locals())


def send_recv(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """Every PE gets the array of the PE before it; PE 0 gets the last one's."""
    return _run("send_recv", **locals())


def exchange(
    arrays: Arrays | None = None,
    *,
    bytes: int | str | None = None,
    dtype: str | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    algorithm: str | None = None,
    blocks: int | None = None,
    seed: int = 1,
    selection: _Path | None = None,
) -> CollectiveResult:
    """The PEs 2i and 2i + 1 swap their arrays; an odd last PE keeps its own."""
    return _run("exchange", **locals())


def all_gather_gemm(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    *,
    model: str | None = None,
    a: object = None,
    b: object = None,
    dtype: str | None = None,
    out_dtype: str | None = None,
    b_layout: str = "NxK",
    activation: str | None = None,
    algorithm: str | None = None,
    transport: str | None = None,
    direction: str | None = None,
    order: str | None = None,
    tile: tuple[int, int] | None = None,
    splits: int | None = None,
    communication_sms: int | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    seed: int = 1,
) -> OperatorResult:
    """gather(A) times B transposed: rows of A are gathered beside the GEMM.

    The global problem is one of these:

    * `m`, `n`, `k`: A is m x k and B is n x k, without data;
    * `model`: a layer such as "llama3-8b:ffn_up" (`tandem.layers()`), of 8192 rows or `m`, without data;
    * `a` and `b`: numpy matrices, A of m x k and B of n x k (k x n with b_layout="KxN"). `result.c` is then the
      product, m x n.

    PE p has its rows of A, its rows of B, and gets its columns of C: `results[p]` is m x (n of p).

    `dtype` is bf16 (default without matrices), f16, f32 or fp8_e4m3. `out_dtype` is the type of C. `activation` is
    none, relu, gelu or silu. `algorithm` is a form, such as overlapped, sequential or decomposed. `transport` is ce or
    sm, `direction` push or pull, and `tile` a pair such as (128, 256). include/tandem/operators.h describes the rest.
    """
    return _run_operator("all_gather_gemm", **locals())


def gemm_reduce_scatter(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    *,
    model: str | None = None,
    a: object = None,
    b: object = None,
    dtype: str | None = None,
    out_dtype: str | None = None,
    b_layout: str = "NxK",
    activation: str | None = None,
    algorithm: str | None = None,
    transport: str | None = None,
    direction: str | None = None,
    order: str | None = None,
    tile: tuple[int, int] | None = None,
    splits: int | None = None,
    communication_sms: int | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    seed: int = 1,
) -> OperatorResult:
    """A times B transposed, summed over the parts of k: sums are scattered beside the GEMM.

    PE p has its columns of A and of B, and gets its rows of C: `results[p]` is (m of p) x n.
    Arguments are those of `all_gather_gemm`.
    """
    return _run_operator("gemm_reduce_scatter", **locals())


def gemm_all_reduce(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    *,
    model: str | None = None,
    a: object = None,
    b: object = None,
    dtype: str | None = None,
    out_dtype: str | None = None,
    b_layout: str = "NxK",
    activation: str | None = None,
    algorithm: str | None = None,
    transport: str | None = None,
    direction: str | None = None,
    order: str | None = None,
    tile: tuple[int, int] | None = None,
    splits: int | None = None,
    shots: int | None = None,
    communication_sms: int | None = None,
    machine: _Path | None = None,
    nodes: int | None = None,
    pes: int | None = None,
    pes_per_node: int | None = None,
    seed: int = 1,
) -> OperatorResult:
    """A times B transposed, summed over the parts of k: all PEs get all sums.

    PE p has its columns of A and of B, and gets all of C: `results[p]` is m x n.
    Arguments are those of `all_gather_gemm`, and `shots` is 1 or 2.
    """
    return _run_operator("gemm_all_reduce", **locals())


def sweep(op: str, **options: Any) -> Table:
    """Runs `op` once for each combination of the options that are lists, in order, and returns the table.

    `options` are those of the function of that name, without data:

        tandem.simulate.sweep("all_reduce", bytes=["64K", "1M", "16M"], algorithm=["ring", "two_shot"], pes=8)

    A combination that the machine cannot run has a row with "error" and no time. Other errors are raised.
    """
    operations = list(_algorithms())
    if op not in operations:
        raise errors.InvalidArgument(f"op: {shown(op)} given, allowed is one of {', '.join(operations)}")
    return _run_all(globals()[op], options)
