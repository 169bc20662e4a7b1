"""Wrong calls of tandem.torch: each raises an error of the package, and the processes live on."""

from __future__ import annotations

import tandem
import tandem.torch as tt
import torch
from common import join

rank, size = join()
count = 0


def refused(function, *arguments, **options):
    global count
    count += 1
    try:
        function(*arguments, **options)
    except tandem.Error as error:
        text = str(error)
        assert text and "\n" not in text, text
    else:
        raise AssertionError((function, arguments, options))


class Bad:
    def __repr__(self):
        raise RuntimeError("no text")

    def __index__(self):
        raise RuntimeError("no number")


NO_TENSORS = [None, 3, "x", [1.0], Bad(), b"", {}, torch.float32]
NO_TYPES = [torch.ones(size, dtype=one) for one in (torch.bool, torch.int16, torch.complex64, torch.complex128)]
NO_GROUPS = ["nothing", 3, Bad(), b"0", ["0"], torch.ones(1)]
x = torch.ones(size, 8)
for operator in (
    tt.all_reduce,
    tt.reduce,
    tt.reduce_scatter,
    tt.all_gather,
    tt.all_to_all,
    tt.broadcast,
    tt.gather,
    tt.scatter,
):
    for wrong in NO_TENSORS + NO_TYPES:
        refused(operator, wrong)
    for group in NO_GROUPS:
        refused(operator, x, group=group)
    if operator in (tt.all_reduce, tt.reduce, tt.reduce_scatter):
        for op in ("x", "SUM", None, 3, Bad()):
            refused(operator, x, op)
    if operator in (tt.reduce, tt.broadcast, tt.gather, tt.scatter):
        for root in (-1, size, 2**31, 2**80, 1.5, "0", None, Bad()):
            refused(operator, x, root=root)
    if operator in (tt.reduce_scatter, tt.all_to_all, tt.scatter):
        refused(operator, torch.ones(size + 1))
        refused(operator, torch.tensor(1.0))
w = torch.ones(8, 16)
for operator in (tt.all_gather_matmul, tt.matmul_reduce_scatter, tt.matmul_all_reduce, tt.replicated_matmul):
    for wrong in [*NO_TENSORS, torch.ones(8, dtype=torch.int32), torch.ones(8), torch.tensor(1.0), torch.ones(size, 9)]:
        refused(operator, wrong, w)
    for wrong in [*NO_TENSORS, w.double(), w.bfloat16(), torch.ones(9, 16), torch.ones(8), torch.ones(1, 8, 16)]:
        refused(operator, x, wrong)
    for wrong in [*NO_TENSORS[1:], torch.ones(15), torch.ones(1, 16), torch.ones(16).double()]:
        refused(operator, x, w, wrong)
    for activation in ("x", "RELU", None, 3):
        refused(operator, x, w, None, activation)
    for group in NO_GROUPS:
        refused(operator, x, w, group=group)
refused(tt.matmul_reduce_scatter, torch.ones(size + 1, 8), w)
refused(tt.all_gather_matmul, x, [])
refused(tt.all_gather_matmul, x, [w, w], [torch.ones(16)])
for layer in (tt.ColumnParallelLinear, tt.RowParallelLinear):
    for features in ((size + 1, size + 1), (0, 0), (-size, -size), ("8", "8"), (8.0, 8.0), (None, None)):
        refused(layer, *features)
    refused(layer, size, size, activation="x")
    refused(layer, size, size, group="nothing")
    for wrong in (None, torch.nn.ReLU(), 3):
        refused(layer.from_linear, wrong)
rows, vector = torch.ones(4, 8), torch.ones(8)
for wrong in [*NO_TENSORS, *NO_TYPES, rows.double(), rows.to(torch.float8_e4m3fn), torch.tensor(1.0), torch.ones(4, 0)]:
    refused(tt.all_reduce_norm, wrong)
for wrong in [*NO_TENSORS[1:], rows.bfloat16(), torch.ones(4, 9), vector, torch.ones(1, 8)]:
    refused(tt.all_reduce_norm, rows, wrong)
for name in ("weight", "bias", "norm_bias"):
    for wrong in [*NO_TENSORS[1:], vector.bfloat16(), torch.ones(9), rows, torch.tensor(1.0)]:
        refused(tt.all_reduce_norm, rows, **{name: wrong})
for name in ("epsilon", "scale"):
    for wrong in (0, -1.0, float("nan"), float("inf"), "1", None, Bad()):
        refused(tt.all_reduce_norm, rows, quantisation="static", **{name: wrong})
for name in ("norm", "quantisation"):
    for wrong in ("x", "RMS", None, 128, Bad()):
        refused(tt.all_reduce_norm, rows, **{name: wrong})
refused(tt.all_reduce_norm, rows, None, vector, norm="none")
refused(tt.all_reduce_norm, rows, scale=2.0)
for group in NO_GROUPS:
    refused(tt.all_reduce_norm, rows, group=group)
for wrong in (None, 3, Bad(), torch.fx.symbolic_trace(lambda x: x + 1), torch.nn.ReLU()):
    refused(tt.fuse_all_reduce_norm, wrong)
refused(tt.ColumnParallelLinear, size, size, keep_gathered=True)
refused(tt.world_of, "nothing")
refused(tt.world_of, device="meta")
assert tt.all_reduce(x).eq(size).all()  # the world has survived
tt.shutdown()
print(count, "wrong calls")
