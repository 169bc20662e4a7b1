#!/usr/bin/env python3
"""Collectives of CuPy and JAX on all GPUs of this machine, by one process, where these packages are installed.

    tandem launch -n 1 --nccl python3 bench/nccl/clients_check.py      through Tandem's NCCL interface
    python3 bench/nccl/clients_check.py                                through NCCL

Each line has a package, a collective, and whether its values are right. Exit code 1: one was wrong or failed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator

COUNT = 1 << 16
Check = tuple[str, Callable[[], bool]]


def cupy_checks() -> Iterator[Check]:
    """Calls of CuPy's communicator, in groups over all GPUs."""
    import cupy
    from cupy.cuda import nccl

    gpus = cupy.cuda.runtime.getDeviceCount()
    comms = nccl.NcclCommunicator.initAll(gpus)

    def filled(count: int, value: Callable[[int], float]) -> list[cupy.ndarray]:
        made = []
        for gpu in range(gpus):
            with cupy.cuda.Device(gpu):
                made.append(cupy.full(count, value(gpu), cupy.float32))
                cupy.cuda.Stream.null.synchronize()
        return made

    def run(call: Callable[[int], None]) -> None:
        nccl.groupStart()
        for gpu in range(gpus):
            with cupy.cuda.Device(gpu):
                call(gpu)
        nccl.groupEnd()
        for gpu in range(gpus):
            with cupy.cuda.Device(gpu):
                cupy.cuda.Device().synchronize()

    def all_equal(arrays: list[cupy.ndarray], value: Callable[[int], float]) -> bool:
        results = []
        for gpu, one in enumerate(arrays):
            with cupy.cuda.Device(gpu):
                results.append(bool((one == value(gpu)).all()))
        return all(results)

    x = filled(COUNT, lambda gpu: gpu + 1.0)
    kind, total = nccl.NCCL_FLOAT32, gpus * (gpus + 1) / 2

    def all_reduce() -> bool:
        y = filled(COUNT, lambda gpu: 0.0)
        run(lambda g: comms[g].allReduce(x[g].data.ptr, y[g].data.ptr, COUNT, kind, nccl.NCCL_SUM, 0))
        return all_equal(y, lambda gpu: total)

    def broadcast() -> bool:
        y = filled(COUNT, lambda gpu: 0.0)
        run(lambda g: comms[g].broadcast(x[g].data.ptr, y[g].data.ptr, COUNT, kind, gpus - 1, 0))
        return all_equal(y, lambda gpu: float(gpus))

    def all_gather() -> bool:
        y = filled(gpus * COUNT, lambda gpu: 0.0)
        run(lambda g: comms[g].allGather(x[g].data.ptr, y[g].data.ptr, COUNT, kind, 0))
        parts = [[one[pe * COUNT : (pe + 1) * COUNT] for one in y] for pe in range(gpus)]
        return all(all_equal(part, lambda gpu, pe=pe: pe + 1.0) for pe, part in enumerate(parts))

    def reduce_scatter() -> bool:
        y = filled(COUNT // gpus, lambda gpu: 0.0)
        run(lambda g: comms[g].reduceScatter(x[g].data.ptr, y[g].data.ptr, COUNT // gpus, kind, nccl.NCCL_SUM, 0))
        return all_equal(y, lambda gpu: total)

    yield from (("allReduce", all_reduce), ("broadcast", broadcast), ("allGather", all_gather))
    yield "reduceScatter", reduce_scatter


def jax_checks() -> Iterator[Check]:
    """Collectives of JAX's pmap."""
    import jax
    import numpy

    gpus = jax.device_count("gpu")
    x = numpy.arange(gpus * gpus * 64, dtype="float32").reshape(gpus, gpus, 64)

    def mapped(function: Callable[..., object]) -> numpy.ndarray:
        return numpy.asarray(jax.pmap(function, axis_name="pe", backend="gpu")(x))

    yield "psum", lambda: (mapped(lambda a: jax.lax.psum(a, "pe")) == x.sum(0)).all()
    yield "pmax", lambda: (mapped(lambda a: jax.lax.pmax(a, "pe")) == x.max(0)).all()
    yield "all_gather", lambda: (mapped(lambda a: jax.lax.all_gather(a, "pe")) == x).all()
    yield "psum_scatter", lambda: (mapped(lambda a: jax.lax.psum_scatter(a, "pe")) == x.sum(0)).all()
    yield "all_to_all", lambda: (mapped(lambda a: jax.lax.all_to_all(a, "pe", 0, 0)) == x.swapaxes(0, 1)).all()
    ring = [(pe, (pe + 1) % gpus) for pe in range(gpus)]
    yield "ppermute", lambda: (mapped(lambda a: jax.lax.ppermute(a, "pe", ring)) == numpy.roll(x, 1, 0)).all()


def main() -> int:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    count = failed = 0
    for package, checks in (("cupy", cupy_checks), ("jax", jax_checks)):
        if importlib.util.find_spec(package) is None:
            print(f"{package}: not installed")
            continue
        try:
            for name, check in checks():
                is_right = bool(check())
                count, failed = count + 1, failed + (not is_right)
                print(f"{package} {name}: {'right' if is_right else 'WRONG'}", flush=True)
        except Exception as error:  # the other package still runs
            failed += 1
            print(f"{package}: FAILED with {type(error).__name__}: {error}")
    print(f"clients_check: {count} calls, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
