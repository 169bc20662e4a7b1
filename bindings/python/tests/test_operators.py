"""Operators on numpy matrices give numpy's product."""

from __future__ import annotations

import pytest

numpy = pytest.importorskip("numpy")

import tandem
from tandem import simulate

OPERATORS = ["all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce"]


def matrices(m, n, k, dtype="float32"):
    """Small whole numbers: products are exact in every order."""
    random = numpy.random.default_rng(1)
    return random.integers(-2, 3, (m, k)).astype(dtype), random.integers(-2, 3, (n, k)).astype(dtype)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    ("m", "n", "k", "pes"), [(64, 48, 32, 4), (37, 29, 11, 3), (1, 5, 4, 2), (0, 8, 8, 2), (9, 8, 7, 1)]
)
def test_equals_numpy(op, m, n, k, pes):
    a, b = matrices(m, n, k)
    r = getattr(simulate, op)(a=a, b=b, pes=pes)
    numpy.testing.assert_array_equal(r.c, a @ b.T, strict=True)
    assert (r.m, r.n, r.k, r.pes, len(r.results)) == (m, n, k, pes, pes)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("algorithm", ["overlapped", "sequential", "decomposed"])
def test_forms(op, algorithm):
    a, b = matrices(300, 40, 24)
    r = getattr(simulate, op)(a=a, b=b, algorithm=algorithm, machine="h200x4", pes=4)
    numpy.testing.assert_array_equal(r.c, a @ b.T, strict=True)


def test_parts_of_each_pe():
    a, b = matrices(8, 12, 16)
    want = a @ b.T
    gathered = simulate.all_gather_gemm(a=a, b=b, pes=4)
    numpy.testing.assert_array_equal(gathered.results[1], want[:, 3:6])
    scattered = simulate.gemm_reduce_scatter(a=a, b=b, pes=4)
    numpy.testing.assert_array_equal(scattered.results[3], want[6:8])
    for one in simulate.gemm_all_reduce(a=a, b=b, pes=4).results:
        numpy.testing.assert_array_equal(one, want)


def test_layout_and_activation():
    a, b = matrices(32, 16, 24)
    r = simulate.gemm_all_reduce(a=a, b=b.T, b_layout="KxN", activation="relu", pes=2)
    numpy.testing.assert_array_equal(r.c, numpy.maximum(a @ b.T, 0), strict=True)


def test_short_types():
    a, b = matrices(32, 16, 24, "float16")
    r = simulate.all_gather_gemm(a=a, b=b, pes=2)
    numpy.testing.assert_array_equal(r.c, (a.astype("f4") @ b.astype("f4").T).astype("float16"), strict=True)
    bits = [(one.astype("f4").view("u4") >> 16).astype("uint16") for one in (a, b)]
    r = simulate.all_gather_gemm(a=bits[0], b=bits[1], dtype="bf16", pes=2)
    assert r.c.dtype == "uint16"
    numpy.testing.assert_array_equal((r.c.astype("u4") << 16).view("f4"), a.astype("f4") @ b.astype("f4").T)


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = matrices(32, 16, 32)
    r = simulate.all_gather_gemm(a=a.astype(ml_dtypes.float8_e4m3fn), b=b.astype(ml_dtypes.float8_e4m3fn), pes=2)
    assert r.c.dtype == ml_dtypes.bfloat16
    numpy.testing.assert_array_equal(r.c.astype("f4"), a @ b.T)


def test_wrong_matrices():
    a, b = matrices(8, 8, 8)
    for error, arguments in [
        (tandem.InvalidArgument, {"a": a}),
        (tandem.InvalidArgument, {"a": a, "b": b[:, :7]}),
        (tandem.InvalidArgument, {"a": a, "b": b.astype("f2")}),
        (tandem.InvalidArgument, {"a": a[0], "b": b}),
        (tandem.InvalidArgument, {"a": a, "b": b, "m": 8}),
        (tandem.InvalidArgument, {"a": a, "b": b, "model": "llama3-8b:qkv"}),
        (tandem.InvalidArgument, {"a": a, "b": b, "algorithm": "compute_only"}),
        (tandem.InvalidArgument, {"a": a, "b": b, "out_dtype": "x"}),
        (tandem.Error, {"a": a.astype("i4"), "b": b.astype("i4")}),
        (tandem.InvalidType, {"a": "x", "b": b}),
        (tandem.InvalidType, {"a": object(), "b": b}),
    ]:
        with pytest.raises(error):
            simulate.all_gather_gemm(**arguments, pes=2)
