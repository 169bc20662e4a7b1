"""Wrong calls of tandem.torch: each raises an error of the package, and the processes live on."""

from __future__ import annotations

import inspect
import re

import tandem
import tandem.torch as tt
import torch
import torch.distributed as dist
from common import join
from tandem._library import shown

count = 0


def named(function, name, arguments, options):
    """The value of the argument that an error names, and its entries where that is a list."""
    bound = inspect.signature(function).bind(*arguments, **options)
    bound.apply_defaults()
    values = {**bound.arguments, **bound.arguments.get("options", {})}
    if name not in values and "arguments" in values:  # a layer that passes them on
        values = dict(zip(("in_features", "out_features"), values["arguments"]))
    assert name in values, f"{function}: no argument {name}"
    value = values[name]
    return [value, *value] if isinstance(value, (list, tuple)) else [value]


def fits(wrong, text, kind):
    """Whether a text shows this value, and the class of the error is the one for it."""
    if isinstance(wrong, torch.Tensor) and text == str(wrong.dtype).removeprefix("torch."):
        return kind is tandem.InvalidType
    if type(wrong) is int and wrong < 2**53 and text == str(float(wrong)):
        return kind is tandem.InvalidArgument
    if text == shown(wrong) or text.split(" on ")[0].split(" with ")[0] == shown(wrong):
        is_default = wrong is None and not dist.is_initialized()
        return kind is tandem.InvalidType or is_default or isinstance(wrong, (str, int, float, list))
    if isinstance(wrong, torch.Tensor):
        sizes = [f"{one} {unit}" for one in wrong.shape for unit in ("rows", "tokens", "elements")]
        given = (str(tuple(wrong.shape)), *sizes, "a tensor", *MORE)
        return kind is tandem.InvalidArgument and any(one in text for one in given)
    if isinstance(wrong, (list, tuple)):
        return kind is tandem.InvalidArgument and text in (str(len(wrong)), "an empty list", "none", *MORE)
    if isinstance(wrong, dist.ProcessGroup):
        return kind is tandem.InvalidArgument and text == shown(wrong.group_name)
    return kind is tandem.InvalidArgument and text == "a graph without shapes"


MORE = ("single scales and vectors",)


def refused(function, *arguments, **options):
    global count
    count += 1
    try:
        function(*arguments, **options)
    except (tandem.InvalidArgument, tandem.InvalidType) as error:
        text = str(error)
        found = re.fullmatch(r"(\w+): (.+?) given.*, allowed .+", text)
        assert found, text
        wrong = named(function, found[1], arguments, options)
        assert any(fits(one, found[2], type(error)) for one in wrong), (type(error), text, wrong)
    else:
        raise AssertionError((function, arguments, options))


class Bad:
    def __repr__(self):
        raise RuntimeError("no text")

    def __index__(self):
        raise RuntimeError("no number")


x = torch.ones(2, 8)
for function in (tt.all_reduce, tt.all_gather, tt.exchange_heads, tt.all_reduce_norm, tt.all_reduce_quantised):
    refused(function, x)  # without a process group
refused(tt.matmul_all_reduce, x, x.t())
refused(tt.ColumnParallelLinear, 8, 8, group=None)
refused(tt.route, torch.zeros(3, 2, dtype=torch.int64), experts=2, hidden=8, group=None)
refused(tt.world_of)
refused(tandem.World.from_torch)
rank, size = join()
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
square = torch.ones(8, 8)
for wrong in [*NO_TENSORS, *NO_TYPES, rows.double(), rows.to(torch.float8_e4m3fn), torch.tensor(1.0), vector]:
    refused(tt.norm_all_gather_matmul, wrong, square)
for wrong in [*NO_TENSORS, square.bfloat16(), torch.ones(9, 8), vector, []]:
    refused(tt.norm_all_gather_matmul, rows, wrong)
wrong_fields = {"residual": vector, "norm_weight": rows, "norm_bias": torch.ones(9), "norm": "x", "epsilon": 0}
for name, wrong in wrong_fields.items():
    refused(tt.norm_all_gather_matmul, rows, square, **{name: wrong})
refused(tt.norm_all_gather_matmul, rows, square, None, vector, norm="none")
refused(tt.norm_all_gather_matmul, rows, square, activation="x")
refused(tt.norm_all_gather_matmul, rows, square, group="nothing")
for operator in (tt.all_reduce_quantised, tt.reduce_scatter_quantised, tt.all_gather_quantised):
    for wrong in [*NO_TENSORS, *NO_TYPES, x.double(), torch.ones(size, dtype=torch.int32)]:
        refused(operator, wrong)
    for wire in ("x", "FP8", None, 8, Bad()):
        refused(operator, x, wire)
    for group in NO_GROUPS:
        refused(operator, x, group=group)
refused(tt.reduce_scatter_quantised, torch.ones(size + 1))
x8, w8, one = torch.ones(size, 16).to(torch.float8_e4m3fn), torch.ones(16, 8).to(torch.float8_e4m3fn), torch.ones(1)
for operator in (tt.all_gather_scaled_matmul, tt.scaled_matmul_reduce_scatter, tt.scaled_matmul_all_reduce):
    for wrong in [*NO_TENSORS, *NO_TYPES, x8.float(), x8[0], x8[:, :8]]:
        refused(operator, wrong, w8, one, one)
    for wrong in [*NO_TENSORS, w8.float(), w8[0], w8[:8], w8.view(1, 16, 8)]:
        refused(operator, x8, wrong, one, one)
    for wrong in [*NO_TENSORS, one.double(), torch.ones(3), torch.ones(size), torch.ones(size + 1, 1)]:
        refused(operator, x8, w8, wrong, one)
    for wrong in [*NO_TENSORS, one.double(), torch.ones(7), torch.ones(2, 8)]:
        refused(operator, x8, w8, one, wrong)
    for wrong in [*NO_TENSORS[1:], torch.ones(8), torch.ones(7).bfloat16(), torch.ones(1, 8).bfloat16()]:
        refused(operator, x8, w8, one, one, wrong)
    refused(operator, x8, w8, one, one, None, "x")
    deep8, deep_w8 = torch.cat([x8] * 16, 1), torch.cat([w8] * 16)  # two blocks along k
    for wrong in (torch.ones(size, 3), torch.ones(size + 1, 2)):
        refused(operator, deep8, deep_w8, wrong, torch.ones(2, 1))
    for wrong in (torch.ones(1, 2), torch.ones(2, 2), torch.ones(2, 1).double()):
        refused(operator, deep8, deep_w8, torch.ones(size, 2), wrong)
    for wrong in (torch.float32, "bfloat16", None, 3):
        refused(operator, x8, w8, one, one, dtype=wrong)
    for group in NO_GROUPS:
        refused(operator, x8, w8, one, one, group=group)
    for wrong in (None, 1, "True", Bad()):
        refused(operator, x8, w8, one, one, use_fast_accum=wrong)
    refused(operator, deep8, deep_w8, torch.ones(size, 2), torch.ones(2, 1), use_fast_accum=True)
refused(tt.all_gather_scaled_matmul, x8, [], one, [])
refused(tt.all_gather_scaled_matmul, x8, [w8, w8], one, [one])
refused(tt.all_gather_scaled_matmul, x8, [w8, w8], one, [one, torch.ones(8)])
refused(tt.scaled_matmul_reduce_scatter, torch.cat((x8, x8[:1])), w8, one, one)
partial, lse = torch.ones(2, 4, 8), torch.ones(2, 4)
for wrong in [*NO_TENSORS, *NO_TYPES, partial.double(), lse, torch.ones(2, 0, 8), torch.ones(2, 4, 0)]:
    refused(tt.merge_heads, wrong, lse)
for wrong in [*NO_TENSORS, lse.bfloat16(), partial, torch.ones(2, 5)]:
    refused(tt.merge_heads, partial, wrong)
for wrong in [*NO_TENSORS, *NO_TYPES, torch.ones(4), torch.ones(4, size + 1), torch.ones(4, 0)]:
    refused(tt.exchange_heads, wrong)
refused(tt.exchange_heads)
refused(tt.exchange_heads, *[x] * 9)
refused(tt.exchange_heads, torch.ones(4, size), torch.ones(5, size))
refused(tt.exchange_heads, torch.ones(4, size), torch.ones(4, size).double())
refused(tt.exchange_heads, torch.ones(size + 1, 2), to_rows=True)
for group in NO_GROUPS:
    refused(tt.merge_heads, partial, lse, group=group)
    refused(tt.exchange_heads, torch.ones(4, size), group=group)
ids, options = torch.zeros(3, 2, dtype=torch.int64), {"experts": size, "hidden": 8}
for wrong in [*NO_TENSORS, *NO_TYPES, ids.float(), ids[0], ids.view(3, 2, 1), torch.zeros(3, 17, dtype=torch.int64)]:
    refused(tt.route, wrong, **options)
for wrong in [*NO_TENSORS[1:], ids, torch.ones(3, 2).double(), torch.ones(2, 2), torch.ones(3)]:
    refused(tt.route, ids, wrong, **options)
for name, wrongs in {
    "experts": (0, -size, size + 1, 2**40, "4", None, 2.0, Bad()),
    "hidden": (0, -1, 2**17, 2**70, "8", None, Bad()),
    "max_tokens": (0, 2, -1, 2**17, "8", 2.5, Bad()),
    "dtype": (torch.float32, torch.int32, "bfloat16", 3, None, Bad()),
    "wire": ("x", "TYPE", None, 0, Bad()),
    "layout": ("x", None, 1, Bad()),
    "align": (-1, 2000, "1", None, Bad()),
    "most_rows": (-1, 3, "1", None, Bad()),  # 3: not without the layout by_expert
    "tp_size": (0, -1, size + 1, 2**40, "1", None, Bad()),
    "group": NO_GROUPS,
}.items():
    for wrong in wrongs:
        refused(tt.route, ids, **{**options, name: wrong})
for features in ((0, 8, size), (8, 9, size), (8, 8, size + 1), (8, 8, 0), ("8", 8, size), (8, None, size)):
    refused(tt.ParallelExperts, *features)
for name, wrong in (
    ("dtype", torch.float32),
    ("max_tokens", 1.5),
    ("group", "nothing"),
    ("tp_size", 0),
    ("tp_size", size + 1),
    ("tp_size", "1"),
):
    refused(tt.ParallelExperts, 8, 8, size, **{name: wrong})
refused(tt.ParallelExperts, 8, 8, size, fused=False, recompute=True)
gates = torch.ones(2, 8, 3)
for wrong in [*NO_TENSORS, gates[0, 0], gates[:, :7]]:
    refused(tt.interleave_gates, wrong, gates)
for wrong in [*NO_TENSORS, gates[0, 0], gates[:, :7], gates[:1], gates.double()]:
    refused(tt.interleave_gates, gates, wrong)
for wrong in [*NO_TENSORS, gates[0, 0], gates]:
    refused(tt.separate_gates, wrong)
routing, rows = tt.route(ids, **options), torch.ones(3, 8, dtype=torch.bfloat16)
y = tt.dispatch(rows, routing)
for wrong in [*NO_TENSORS, *NO_TYPES, rows.float(), rows.half(), rows[0], rows[:, :7], torch.cat((rows, rows))]:
    refused(tt.dispatch, wrong, routing)
for wrong in [*NO_TENSORS[1:], torch.ones(3, 1)]:
    refused(tt.dispatch, rows, routing, wrong)
for wrong in [*NO_TENSORS, *NO_TYPES, rows.float(), rows[0], rows[:2], torch.cat((rows, rows))]:
    refused(tt.route_and_dispatch, wrong, ids, experts=size)
for wrong in [*NO_TENSORS, *NO_TYPES, ids.float(), ids[0], ids[:2]]:
    refused(tt.route_and_dispatch, rows, wrong, experts=size)
refused(tt.route_and_dispatch, rows, ids, experts=size, dtype=torch.float16)
refused(tt.route_and_dispatch, rows, ids, experts=size, hidden=1)
refused(tt.route_and_dispatch, rows, ids, experts=size, x_scales=torch.ones(3, 1))
refused(tt.route_and_dispatch, rows.to(torch.float8_e4m3fn), ids, experts=size, wire="given")
given = tt.route(ids, **options, wire="given")
codes = rows.to(torch.float8_e4m3fn)
for wrong in [*NO_TENSORS, torch.ones(3, 2), torch.ones(2, 1), torch.ones(3, 1).double()]:
    refused(tt.dispatch, codes, given, wrong)
refused(tt.dispatch, rows, given, torch.ones(3, 1))
for wrong in [*NO_TENSORS, *NO_TYPES, y.float(), y[1:], y[:, :7]]:
    refused(tt.combine, wrong, routing)
for wrong in [*NO_TENSORS[1:], rows.float(), rows[:2], rows[0]]:
    refused(tt.combine, y, routing, wrong)
for wrong in (None, 3, y, routing.memory, Bad()):
    refused(tt.dispatch, rows, wrong)
    refused(tt.combine, y, wrong)
for wrong in (None, 3, Bad(), torch.fx.symbolic_trace(lambda x: x + 1), torch.nn.ReLU()):
    refused(tt.fuse_all_reduce_norm, wrong)
    refused(tt.fuse_norm_all_gather_matmul, wrong)
refused(tt.ColumnParallelLinear, size, size, keep_gathered=True)
refused(tt.world_of, "nothing")
refused(tt.world_of, device="meta")
# Tensors without memory have shapes, and do not go with others.
nothing = torch.ones(size, 8, device="meta")
assert tt.all_gather(nothing).shape == (size * size, 8) and tt.all_reduce(nothing).is_meta
refused(tt.matmul_all_reduce, x, w.to("meta"))
refused(tt.all_reduce_norm, x, nothing)
refused(tt.merge_heads, partial, lse.to("meta"))
# A group that this process is not in, or no longer is.
alone = dist.new_group([0])
past = dist.new_group()
assert tt.all_reduce(x, group=past).eq(size).all()
tt.shutdown()
dist.destroy_process_group(past)
for operator in (tt.all_reduce, tt.all_gather, tt.all_reduce_quantised, tt.world_of):
    given = () if operator is tt.world_of else (x,)
    refused(operator, *given, group=past)
    if rank != 0:
        refused(operator, *given, group=alone)
if rank == 0:
    assert tt.all_reduce(x, group=alone).equal(x)


# The operators as the dispatcher has them, with what their schemas refuse and what these let through.
def guesses(kind, i):
    """The i-th value of a type of schemas that no operator takes, or that only some take."""
    values = {
        "Tensor": (torch.tensor(1.0), torch.ones(3, dtype=torch.bool), torch.ones(0), torch.ones(2, 3, 4, 5)),
        "int": (-1, 0, 2**62, 3),
        "float": (float("nan"), -1.0, 0.0, 1.0),
        "bool": (True, False, True, False),
        "str": ("x", "", "sum", "0"),
        "ScalarType": (torch.int16, torch.float32, torch.bfloat16, torch.bool),
    }
    if kind.startswith("Optional["):
        return None if i % 2 else guesses(kind[9:-1], i)
    if kind.startswith("List["):
        return [guesses(kind[5:-1], i)] * i
    return values.get(kind, values["int"])[i]


for name in sorted(torch._C._dispatch_get_all_op_names()):
    if not name.startswith("tandem::") or name.startswith("tandem::_"):
        continue
    operator = getattr(torch.ops.tandem, name.removeprefix("tandem::"))
    arguments = operator.default._schema.arguments
    calls = [[guesses(str(one.type), i) for one in arguments] for i in range(4)]
    for given in (*calls, [], [*calls[0], 1], [None] * len(arguments), ["x"] * len(arguments)):
        count += 1
        try:
            operator(*given)
        except (RuntimeError, TypeError, ValueError) as error:  # PyTorch's own, or the package's
            assert str(error)
        else:
            assert given is calls[3], (name, given)  # of which some are right
assert tt.all_reduce(x).eq(size).all()  # the world has survived
tt.shutdown()
print(count, "wrong calls")
