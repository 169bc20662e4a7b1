"""Every simulated collective gives what numpy gives."""

from __future__ import annotations

import threading

import pytest

numpy = pytest.importorskip("numpy")

from tandem import simulate

FLOATS = ["float32", "float16", "float64"]
INTEGERS = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]
REDUCE = {
    "sum": lambda all_: sum(all_[1:], start=all_[0]),
    "prod": lambda all_: numpy.prod(all_, axis=0, dtype=all_[0].dtype),
    "min": lambda all_: numpy.min(all_, axis=0),
    "max": lambda all_: numpy.max(all_, axis=0),
}


def arrays_of(pes, shape, dtype="float32", low=-3, high=4):
    """Small whole numbers: their sums and products are exact in every type and order."""
    random = numpy.random.default_rng(pes + len(shape))
    low = max(low, 0) if dtype.startswith("uint") else low
    return [random.integers(low, high, shape).astype(dtype) for _ in range(pes)]


def same(results, wanted):
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted):
        if want is None:
            assert result is None
            continue
        assert result.dtype == want.dtype
        numpy.testing.assert_array_equal(result, want, strict=True)


def parts(array, pes):
    return numpy.split(array, pes)


def expected(op, x, root=0):
    n = len(x)
    total = REDUCE["sum"](x)
    joined = numpy.concatenate(x)

    def only_root(value):
        return [value if pe == root else None for pe in range(n)]

    return {
        "all_reduce": lambda: [total] * n,
        "all_gather": lambda: [joined] * n,
        "reduce_scatter": lambda: parts(total, n),
        "all_to_all": lambda: [numpy.concatenate([parts(x[i], n)[j] for i in range(n)]) for j in range(n)],
        "broadcast": lambda: [x[root]] * n,
        "reduce": lambda: only_root(total),
        "gather": lambda: only_root(joined),
        "scatter": lambda: parts(x[root], n),
        "send_recv": lambda: [x[pe - 1] for pe in range(n)],
        "exchange": lambda: [x[pe ^ 1] if pe ^ 1 < n else x[pe] for pe in range(n)],
    }[op]()


ALL = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter"]
ALL += ["send_recv", "exchange"]


@pytest.mark.parametrize("op", ALL)
@pytest.mark.parametrize("pes", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_equals_numpy(op, pes, rows):
    x = arrays_of(pes, (rows * pes, 3))
    before = [one.copy() for one in x]
    same(getattr(simulate, op)(x).results, expected(op, x))
    same(x, before)


@pytest.mark.parametrize("op", ["broadcast", "reduce", "gather", "scatter"])
def test_root(op):
    x = arrays_of(4, (8,))
    same(getattr(simulate, op)(x, root=2).results, expected(op, x, root=2))


@pytest.mark.parametrize("op", ["broadcast", "scatter"])
def test_only_the_root_gives(op):
    x = arrays_of(3, (6,))
    same(getattr(simulate, op)([None, x[1], None], root=1).results, expected(op, x, root=1))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("reduction", list(REDUCE))
def test_types_and_reductions(dtype, reduction):
    x = arrays_of(4, (33,), dtype)
    want = REDUCE[reduction](x)
    same(simulate.all_reduce(x, op=reduction).results, [want] * 4)


def test_avg_and_premul_sum():
    x = arrays_of(4, (9,))
    same(simulate.all_reduce(x, op="avg").results, [REDUCE["sum"](x) / numpy.float32(4)] * 4)
    scaled = REDUCE["sum"]([x[pe] * numpy.float32(pe - 1) for pe in range(4)])
    same(simulate.all_reduce(x, op="premul_sum", scales=[-1, 0, 1, 2]).results, [scaled] * 4)
    same(simulate.all_reduce(x, op="premul_sum").results, [REDUCE["sum"](x)] * 4)


def bf16_bits(array):
    return (array.astype("float32").view("uint32") >> 16).astype("uint16")


def test_bf16_as_bits():
    x = arrays_of(4, (50,))
    r = simulate.all_reduce([bf16_bits(one) for one in x], dtype="bf16")
    assert r.dtype == "bf16"
    same(r.results, [bf16_bits(REDUCE["sum"](x))] * 4)


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype, name in ((ml_dtypes.bfloat16, "bf16"), (ml_dtypes.float8_e4m3fn, "fp8_e4m3")):
        x = [one.astype(dtype) for one in arrays_of(4, (50,))]
        r = simulate.all_reduce(x)
        assert r.dtype == name
        same(r.results, [REDUCE["sum"]([one.astype("float32") for one in x]).astype(dtype)] * 4)


@pytest.mark.parametrize("algorithm", ["one_shot", "two_shot", "ring", "tree", "recursive_doubling", "copy_engine"])
def test_algorithms(algorithm):
    x = arrays_of(4, (1000,))
    r = simulate.all_reduce(x, algorithm=algorithm, blocks=2 if algorithm != "copy_engine" else None, seed=7)
    assert (r.algorithm, r.seed) == (algorithm, 7)
    same(r.results, [REDUCE["sum"](x)] * 4)


def test_between_nodes():
    x = arrays_of(16, (100,))
    r = simulate.all_reduce(x, machine="h100x8-rail", nodes=2)
    assert (r.machine, r.pes) == ("h100x8-rail", 16)
    same(r.results, [REDUCE["sum"](x)] * 16)
    same(simulate.all_reduce(x[:4], pes_per_node=2).results, [REDUCE["sum"](x[:4])] * 4)


def test_inputs_of_other_kinds():
    x = numpy.arange(24.0, dtype="float32").reshape(4, 6)
    want = [x.sum(axis=0)] * 4
    same(simulate.all_reduce(x).results, want)
    same(simulate.all_reduce(numpy.asfortranarray(x)).results, want)
    same(simulate.all_reduce(numpy.repeat(x, 2, axis=1)[:, ::2]).results, want)
    same(simulate.all_reduce(x.astype(">f4")).results, want)
    same(simulate.all_reduce([[1, 2], [3, 4]]).results, [numpy.array([4, 6])] * 2)
    same(simulate.all_reduce([numpy.float32(1), numpy.float32(2)]).results, [numpy.array(3, "float32")] * 2)
    same(simulate.all_gather([numpy.float32(1), numpy.float32(2)]).results, [numpy.array([1, 2], "float32")] * 2)


def test_threads():
    x = arrays_of(4, (5000,))
    want = simulate.all_reduce(x)
    found = []

    def work():
        found.append(simulate.all_reduce(x))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for one in found:
        assert one.trace_hash == want.trace_hash
        same(one.results, want.results)
