"""Hundreds of wrong calls: each raises an error of the package that fits, with a text of one line."""

from __future__ import annotations

import ctypes
import itertools
import json

import pytest
import tandem
from tandem import _library, simulate

COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter"]
COLLECTIVES += ["send_recv", "exchange"]


class Bad:
    """Raises wherever it is looked at."""

    def __repr__(self):
        raise RuntimeError("no text")

    def __float__(self):
        raise OverflowError("no number")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


# Arguments, and values that they cannot have.
WRONG = {
    "bytes": [-1, "", "x", "1Q", "1KB", 1.5, True, b"1K", [], Bad(), 10**40, "9" * 400, "\0", "\ud800"],
    "dtype": ["", "x", "f33", 3, "\0", "F32", Bad(), "a\nb", "é" * 5000],
    "machine": ["", "x", "/", "/dev/null", "h200x4\0", 3, Bad(), "\ud800", "../" * 2000, ["h200x4"]],
    "nodes": [0, -1, 2**31, 10**30, 2.0, "2", True, 5],
    "pes": [0, -3, 2**31, -(2**63), 2**64, 1.0, "4", False, Bad(), [4], 10**300],
    "pes_per_node": [0, -1, 3, 2**40, "2", 0.5],
    "algorithm": ["x", "\0", 1, Bad(), "ring ", "RING", "\x1b[31m"],
    "blocks": [-1, 10**6, 2**31, "1", 1.5, True],
    "seed": [-1, 2**64, 1.5, "1", float("nan"), Bad()],
    "selection": ["/nothing/here", "/dev/null", "/", 3, "\0"],
    "op": ["x", "SUM", 1, "", Bad()],
    "root": [-1, 4, 2**31, "0", 0.0],
    "scales": [
        3,
        "x",
        [1],
        [1, 2, 3, "4"],
        [1, 2, 3, float("nan")],
        [Bad()] * 4,
        [[1]] * 4,
        [10**400] * 4,
        [1, 1, 1, 1],
    ],
}

# Messages that begin in another way.
OTHERWISE = {
    "pes_per_node": ["pes: 4 given, allowed on h200x4 is a number that fills whole nodes"],
    "selection": ["selection table"],
}


def refused(function, *arguments, **options):
    with pytest.raises(tandem.Error) as caught:
        function(*arguments, **options)
    text = str(caught.value)
    assert text
    assert "\n" not in text
    assert "\x1b" not in text
    return caught.value


def collective_of(name):
    return {"root": "broadcast"}.get(name, "all_reduce")


@pytest.mark.parametrize("name", list(WRONG))
def test_options_of_collectives(name):
    for value in WRONG[name]:
        options = {"bytes": 1024, "pes": 4, "machine": "h200x4", name: value}
        error = refused(getattr(simulate, collective_of(name)), **options)
        assert str(error).startswith((f"{name}:", f"{name}[", *OTHERWISE.get(name, []))), error
        assert isinstance(error, (ValueError, TypeError)), error


OPERATOR_WRONG = {
    "m": [-1, 2**62, "1", 1.5, None],
    "n": [0, -1, 2**62, "1", None],
    "k": [0, -1, 10**30, True, None],
    "model": ["x", "", 3],
    "dtype": ["i32", "x", "f64", 4],
    "out_dtype": ["x", "i8", 4],
    "b_layout": ["x", "", "nxk", 2],
    "activation": ["x", 1],
    "algorithm": ["x", "", 1],
    "transport": ["x", 1],
    "direction": ["x", ""],
    "order": ["x", 1],
    "tile": [1, (1,), (0, 0), (1, 2, 3), "128x256", (1.5, 2), (-1, 4), (10**20, 1)],
    "splits": [0, 9, -1, "1"],
    "communication_sms": [-2, 10**6, "1"],
}


@pytest.mark.parametrize("name", list(OPERATOR_WRONG))
def test_options_of_operators(name):
    for value, op in itertools.product(OPERATOR_WRONG[name], ["all_gather_gemm", "gemm_reduce_scatter"]):
        shape = {} if name == "model" else {"m": 64, "n": 64, "k": 64}
        error = refused(getattr(simulate, op), **{**shape, "pes": 2, name: value})
        assert str(error).startswith((f"{name}:", "m, n, k:")), error
    for value in (0, 3, "1"):
        refused(simulate.gemm_all_reduce, 64, 64, 64, shots=value)


@pytest.mark.parametrize("op", COLLECTIVES)
def test_wrong_arrays(op):
    numpy = pytest.importorskip("numpy")
    ones = numpy.ones(4, "f4")
    call = getattr(simulate, op)
    wrong = [3, "text", b"x", object(), {}, [], (), set(), ones, numpy.float32(1), [object()] * 2, [Bad()] * 2, Bad()]
    wrong += [["a", "b"], [None, None], [[[1], [1, 2]]] * 2, numpy.ones((0, 3)), [ones.astype("M8[s]")] * 2]
    wrong += [[ones.astype(kind)] * 2 for kind in ("c8", "?", "S4", "O", "i2", "u2", "g")]
    wrong += [numpy.ones((1025, 2)), numpy.ones((5, 20)) * 1j]
    if op not in ("broadcast", "scatter"):
        wrong += [[ones, numpy.ones(5, "f4")], [ones, ones.astype("f8")], [ones, None], [ones, "x"]]
    if op in ("reduce_scatter", "all_to_all", "scatter"):
        wrong += [[numpy.ones(5, "f4")] * 2, [numpy.float32(1)] * 2]
    for arrays in wrong:
        error = refused(call, arrays, machine="h200x8")
        assert isinstance(error, (ValueError, TypeError)), error
    refused(call, [ones] * 2, bytes=8)
    refused(call)
    refused(call, [ones] * 2, pes=3)
    refused(call, [ones] * 2, dtype="bf16")
    refused(call, [ones] * 2, nodes=2)
    with pytest.raises(TypeError):
        call([ones] * 2, nonsense=1)


def test_more_than_this_computer_has():
    assert isinstance(refused(simulate.all_gather, bytes=2**46, pes=4), MemoryError)
    assert isinstance(refused(simulate.all_to_all, bytes="1M", machine="h100x8-rail", nodes=1024), ValueError)


def test_scales_with_another_reduction():
    assert "premul_sum" in str(refused(simulate.all_reduce, bytes=64, pes=2, scales=[1, 2]))
    assert "one for each PE" in str(refused(simulate.all_reduce, bytes=64, pes=2, op="premul_sum", scales=[1]))


def answer_of(request, inputs=None, outputs=None):
    library = _library._load()
    answer = library.tandem_sim_call(request, len(request), inputs, len(inputs or ()), outputs, len(outputs or ()))
    kind, text = library.tandem_sim_kind_of(answer), library.tandem_sim_text(answer).decode()
    library.tandem_sim_free(answer)
    return kind, text


REQUESTS = [
    b"",
    b"{",
    b"[]",
    b"3",
    b"null",
    b'"run"',
    b"{}",
    b'{"call": 3}',
    b'{"call": "x"}',
    b'{"call": "run"}',
    b"\xff",
]
REQUESTS += [
    b'{"call": "run", "op": "all_reduce", "nonsense": 1}',
    b'{"call": "run", "op": ["all_reduce"]}',
    b"[" * 5000,
]
REQUESTS += [b'{"call": "run", "op": "all_reduce", "pes": %s}' % value for value in (b"1e400", b"-0", b"{}", b"null")]
REQUESTS += [b'{"call": "run", "op": "all_reduce", "critical_path": 1}', b'{"call": "pes", "pes": "x"}']
REQUESTS += [b'{"call": "run", "op": "all_reduce", "scales": [1, null]}', b'{"call": "run", "op": "\\ud800"}']


@pytest.mark.parametrize("request_text", REQUESTS)
def test_wrong_requests_of_the_library(request_text):
    kind, text = answer_of(request_text)
    assert kind != 0
    assert text


def test_wrong_arrays_of_the_library():
    request = json.dumps({"call": "run", "op": "all_reduce", "count": 4, "pes": 2, "machine": "h200x4"}).encode()
    data = (ctypes.c_float * 4)()
    right = _library.Array(ctypes.addressof(data), 16)
    for one in (_library.Array(None, 16), _library.Array(ctypes.addressof(data), 15), _library.Array(None, 0)):
        for inputs, outputs in (([one, right], [right] * 2), ([right] * 2, [right, one])):
            kind, text = answer_of(request, (_library.Array * 2)(*inputs), (_library.Array * 2)(*outputs))
            assert kind == 1, text
    for count in (1, 3):
        kind, _ = answer_of(request, (_library.Array * count)(*[right] * count), (_library.Array * 2)(right, right))
        assert kind == 1
    library = _library._load()
    assert library.tandem_sim_kind_of(None) != 0
    assert library.tandem_sim_text(None) == b""
    library.tandem_sim_free(None)
    answer = library.tandem_sim_call(None, 0, None, 2, None, 0)
    assert library.tandem_sim_kind_of(answer) == 2
    library.tandem_sim_free(answer)


def test_the_interpreter_still_works():
    assert simulate.all_reduce(bytes=1024, pes=4, machine="h200x4").time_us > 0
