"""Values and gradients of all operators beside float64 references from gloo."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.nn.functional as F
from common import check_close, gathered, join
from tandem.torch import _native

rank, size = join()
ACTIVATIONS = {"none": lambda z: z, "relu": torch.relu, "gelu": F.gelu, "silu": F.silu}


def leaf(*shape, dtype=torch.float64, scale=1.0):
    return (torch.randn(*shape, dtype=torch.float64) * scale).to(dtype).requires_grad_()


def twins(x):
    """The tensors of all processes in float64, with gradients of their own."""
    return [one.double().requires_grad_() for one in gathered(x)]


def compare(what, operator, reference, x):
    """Compares results, and gradients for random gradients of the results."""
    results = operator(x)
    every = twins(x)
    wanted = reference(every)
    check_close(what, results.detach(), wanted[rank].detach())
    torch.manual_seed(100)
    weights = [torch.randn_like(one) for one in wanted]
    (results * weights[rank].to(results.dtype)).sum().backward()
    sum((one * weight).sum() for one, weight in zip(wanted, weights)).backward()
    grad = every[rank].grad
    check_close((what, "gradient"), x.grad, torch.zeros_like(every[rank]) if grad is None else grad)


def zeros_but(root, value):
    return [value if pe == root else torch.zeros_like(value) for pe in range(size)]


def collectives(dtype):
    rows = 2 * size

    def parts(x):
        return x.reshape(size, 2, 3)

    for shape in ((rows, 3), (rows, 2, 3), (rows,)):
        torch.manual_seed(rank)
        compare("all_reduce", lambda x: tt.all_reduce(x), lambda e: [sum(e)] * size, leaf(*shape, dtype=dtype))
        compare(
            "average", lambda x: tt.all_reduce(x, "avg"), lambda e: [sum(e) / size] * size, leaf(*shape, dtype=dtype)
        )
        compare("all_gather", lambda x: tt.all_gather(x), lambda e: [torch.cat(e)] * size, leaf(*shape, dtype=dtype))
        compare(
            "reduce_scatter",
            lambda x: tt.reduce_scatter(x),
            lambda e: list(sum(e).chunk(size)),
            leaf(*shape, dtype=dtype),
        )
        compare(
            "all_to_all",
            lambda x: tt.all_to_all(x),
            lambda e: [torch.cat([one.chunk(size)[pe] for one in e]) for pe in range(size)],
            leaf(*shape, dtype=dtype),
        )
        for root in range(size):
            compare("broadcast", lambda x: tt.broadcast(x, root), lambda e: [e[root]] * size, leaf(*shape, dtype=dtype))
            compare(
                "reduce",
                lambda x: tt.reduce(x, "sum", root),
                lambda e: zeros_but(root, sum(e)),
                leaf(*shape, dtype=dtype),
            )
            compare(
                "gather",
                lambda x: tt.gather(x, root),
                lambda e: zeros_but(root, torch.cat(e)),
                leaf(*shape, dtype=dtype),
            )
            compare(
                "scatter", lambda x: tt.scatter(x, root), lambda e: list(e[root].chunk(size)), leaf(*shape, dtype=dtype)
            )
    transposed = torch.arange(6.0 * size).reshape(3, rows).t()
    assert torch.equal(tt.all_reduce(transposed), transposed * size)
    maximum = tt.all_reduce(torch.full((3,), float(rank)), "max")
    assert maximum.tolist() == [size - 1] * 3


def products(dtype, activation, biased, k_local, columns, layout):
    """All operators with one shape; `layout` is that of the weights."""
    torch.manual_seed(1000 + rank)
    activate = ACTIVATIONS[activation]
    name = (activation, biased, k_local, columns, layout)

    def weight(k, n):
        made = leaf(n, k, dtype=dtype, scale=k**-0.5) if layout == "NxK" else leaf(k, n, dtype=dtype, scale=k**-0.5)
        return made, (made.t() if layout == "NxK" else made)

    def reference(x, leaves, biases, gathers, scatters):
        """Results of all PEs in float64, from everybody's matrices."""
        xs, ws = twins(x), [twins(one) for one in leaves]
        matrix = [[w.t() if layout == "NxK" else w for w in every] for every in ws]
        bs = [twins(b) for b in biases]
        if gathers:
            whole = torch.cat(xs)
            return (
                xs,
                ws,
                bs,
                [
                    [activate(whole @ m[pe] + (b[pe] if b else 0)) for m, b in zip(matrix, bs or [None] * len(ws))]
                    for pe in range(size)
                ],
            )
        total = sum(x @ m for x, m in zip(xs, matrix[0])) + (bs[0][0] if bs else 0)
        total = activate(total)
        return xs, ws, bs, [[part] for part in (total.chunk(size) if scatters else [total] * size)]

    def check(what, results, x, leaves, biases, gathers, scatters):
        xs, ws, bs, wanted = reference(x, leaves, biases, gathers, scatters)
        torch.manual_seed(2000)
        weights = [[torch.randn_like(one) for one in own] for own in wanted]
        once = what == "matmul_all_reduce"  # its result counts once, and has one gradient for all
        own = weights[0] if once else weights[rank]
        for got, want in zip(results, wanted[rank]):
            check_close((what, name), got.detach(), want.detach())
        sum((got * w.to(dtype)).sum() for got, w in zip(results, own)).backward()
        terms = zip(wanted[:1], weights[:1]) if once else zip(wanted, weights)
        sum((one * w).sum() for o, ww in terms for one, w in zip(o, ww)).backward()
        check_close((what, name, "x"), x.grad, xs[rank].grad)
        for leaf_, every in zip(leaves, ws):
            check_close((what, name, "weight"), leaf_.grad, every[rank].grad)
        for bias, every in zip(biases, bs):
            check_close((what, name, "bias"), bias.grad, every[rank if gathers else 0].grad)

    for shape in ((4, k_local), (2, 3, k_local)):
        x = leaf(*shape, dtype=dtype)
        made = [weight(k_local, n) for n in columns]
        biases = [leaf(n, dtype=dtype) for n in columns] if biased else []
        leaves, matrices = [one[0] for one in made], [one[1] for one in made]
        results = tt.all_gather_matmul(x, matrices, biases or None, activation)
        check("all_gather_matmul", results, x, leaves, biases, True, False)
        for one in (x, *leaves, *biases):
            one.grad = None
        results, whole = tt.all_gather_matmul(x, matrices, biases or None, activation, return_gathered=True)
        assert torch.equal(whole, torch.cat(gathered(x))), name
        check("all_gather_matmul that keeps", results, x, leaves, biases, True, False)
        for what, operator, scatters in (
            ("matmul_reduce_scatter", tt.matmul_reduce_scatter, True),
            ("matmul_all_reduce", tt.matmul_all_reduce, False),
        ):
            x = leaf(size * shape[0], *shape[1:], dtype=dtype)
            own, matrix = weight(k_local, columns[0])
            # The bias is one parameter, so all PEs hold the same.
            bias = gathered(leaf(columns[0], dtype=dtype))[0].requires_grad_() if biased else None
            result = operator(x, matrix, bias, activation)
            check(what, [result], x, [own], [] if bias is None else [bias], False, scatters)


for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
    collectives(dtype)
    for activation in ACTIVATIONS:
        if activation == "relu" and dtype in (torch.bfloat16, torch.float16):
            continue  # rounding changes signs, and with them gradients
        products(dtype, activation, True, 16, [8, 24], "NxK")
    products(dtype, "none", False, 16, [8], "KxN")
    products(dtype, "silu", True, 5, [3, 7], "NxK")  # rows that no operator of the library takes
    products(dtype, "gelu", False, 24, [16], "KxN")
x, w = leaf(2, 8, dtype=torch.float32), leaf(8, 16, dtype=torch.float32)
(tt.all_gather_matmul(x, w, return_gathered=True)[1] * (rank + 1)).sum().backward()  # the gathered rows alone
assert x.grad.eq(size * (size + 1) / 2).all()
for m in (1, 5, 300, 2):  # plans grow
    x, w = torch.ones(m, 8), torch.ones(16, 8)
    assert tt.all_gather_matmul(x, w.t()).eq(8).all()
assert tt.all_gather_matmul(torch.ones(0, 8), torch.ones(16, 8).t()).shape == (0, 16)
assert tt.matmul_all_reduce(torch.ones(0, 2, 8), torch.ones(16, 8).t()).shape == (0, 2, 16)
odd = torch.ones(2 * 8 + 1)[1:].reshape(2, 8)  # at an address that is no multiple of 16
assert tt.all_gather_matmul(odd, torch.ones(16, 8).t()).eq(8).all()

# Collectives without Python between dispatcher and C API, beside those with it.
operator = _native._operator
assert (operator is not None) == _native.IS_LOADED
with torch.no_grad():
    for shape, dtype in (((size, 3), torch.bfloat16), ((2 * size,), torch.int64), ((0, 2), torch.float32)):
        x = (torch.arange(torch.tensor(shape).prod()) * (rank + 1)).view(shape).to(dtype)
        for function in (tt.all_reduce, tt.reduce_scatter, tt.all_gather, tt.all_to_all):
            results = []
            for _native._operator in (operator, None):
                results.append(function(x))
            assert results[0].shape == results[1].shape and torch.equal(*results), (function, shape)
            assert results[0].stride() == results[1].stride() and results[0].dtype == dtype
    _native._operator = operator
    assert tt.all_gather(torch.tensor(rank)).tolist() == list(range(size))
    assert tt.all_reduce(torch.ones(3, 2 * size).t()).eq(size).all()  # not contiguous
    twice = torch.complex(torch.zeros(size), torch.ones(size)).conj().imag  # values that are negated when they are read
    assert tt.all_reduce(twice).eq(-size).all()
tt.shutdown()
print("all equal")
