"""PyTorch's pass for async tensor parallelism ends in Tandem's operators, with the values of the separate ones."""

from __future__ import annotations

import re
import warnings

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed._symmetric_memory as symm_mem
from common import DEVICE, check_close, join
from tandem.torch import _groups

warnings.simplefilter("ignore")  # newer versions have other names for the same collectives
rank, size = join()
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32  # types that the overlapped operators take there
group = dist.group.WORLD.group_name
tt.enable_async_tp()
tt.enable_async_tp()  # once more is no error


def called(function, *arguments, **named):
    """The result of a call, and the operators of Tandem that it ran."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        result = function(*arguments, **named)
    # A name that begins with an underline is inside of another one.
    names = [event.name for event in profile.events() if re.match("tandem::[^_]", event.name)]
    return result, [name.removeprefix("tandem::") for name in names]


def gathered(x, axis=0):
    return functional.all_gather_tensor(x, axis, group)


def complete(x):
    return x.wait() if hasattr(x, "wait") else x


def scattered(x, op="sum", axis=0):
    return functional.reduce_scatter_tensor(x, op, axis, group)


def gather(x, u, v, w):
    return gathered(x) @ v


def gather_for_two(x, u, v, w):
    whole = gathered(x)
    return whole @ u, whole @ v


def scatter(x, u, v, w):
    return scattered(x @ v)


def block(x, u, v, w):
    """Two layers with an operator between them."""
    return scattered(tt.all_reduce(gathered(x) @ v, "avg") @ w)


def average(x, u, v, w):
    return scattered(x @ v, "avg")


AG, RS = "all_gather_matmul", "matmul_reduce_scatter"
# Nothing but these operators is left in the graphs, so that Inductor compiles no C++.
options = {"_micro_pipeline_tp": True}
for function, shape, wanted in (
    (gather, (4 * size, 16), [AG]),
    (gather, (2 * size, 3, 16), [AG]),
    (gather_for_two, (4 * size, 16), [AG]),
    (scatter, (4 * size, 16), [RS]),
    (block, (4 * size, 16), [AG, "all_reduce", RS]),
    (average, (4 * size, 16), []),  # the former implementation
):
    torch.manual_seed(rank)
    x, u = torch.randn(*shape, dtype=DTYPE), torch.randn(8, 16, dtype=DTYPE).t()
    v, w = torch.randn(24, 16, dtype=DTYPE).t(), torch.randn(16, 24, dtype=DTYPE).t()
    with symm_mem._test_mode():
        torch._dynamo.reset()
        compiled = torch.compile(function, options=options, fullgraph=True)
        compiled(x, u, v, w)
        got, names = called(compiled, x, u, v, w)
    reference = function(*(one.double() for one in (x, u, v, w)))
    if isinstance(got, torch.Tensor):
        got, reference = (got,), (reference,)
    for one, other in zip(got, reference):
        check_close(function, one, complete(other))
    assert names == wanted, (function, names)

# Without the compiler: other axes, and the operators' own arguments.
fused = torch.ops.symm_mem
x, w = torch.randn(2, 4 * size, 16, dtype=DTYPE), torch.randn(16, 24, dtype=DTYPE)
for axis, keeps, wanted in ((1, False, [AG]), (0, False, [AG]), (1, True, [AG])):
    (kept, (got,)), names = called(fused.fused_all_gather_matmul, x, [w], axis, group, return_A=keeps)
    whole = gathered(x.double(), axis)
    assert names == wanted and (torch.equal(kept, complete(whole).to(DTYPE)) if keeps else kept is None), names
    check_close("axis", got, whole @ w.double())
got, names = called(fused.fused_matmul_reduce_scatter, x, w, "sum", 1, group)
assert names == [RS] and got.is_contiguous()
check_close("axis", got, scattered(x.double() @ w.double(), "sum", 1))
# fp8 with scales, which PyTorch passes as two axes for columns.
f8, bf16 = torch.float8_e4m3fn, torch.bfloat16
torch.manual_seed(rank)
x8, w8 = torch.randn(2, 4, 16).to(f8), torch.randn(8, 16).to(f8).t()
for axis, x_scale, w_scale in ((0, torch.tensor(0.5), torch.tensor(2.0)), (1, torch.rand(2, 4, 1), torch.rand(1, 8))):
    arguments = (x8, [w8], x_scale, [w_scale], axis, group, [None], [None], [bf16], [True])
    (kept, (got,)), names = called(fused.fused_all_gather_scaled_matmul, *arguments)
    whole = complete(gathered(x8.float(), axis))
    assert names == ["all_gather_scaled_matmul"] and torch.equal(kept.float(), whole)
    scale = x_scale if axis == 0 else complete(gathered(x_scale, axis))
    check_close("scaled", got, (whole.double() * scale) @ (w8.double() * w_scale))
kept = {operator: dict(options) for operator, _, _, options in _groups.existing(group, DEVICE).plans}
assert kept["all_gather_gemm"]["fast_accumulation"] == 1, "as PyTorch asked"
x8, x_scale = torch.randn(4 * size, 16).to(f8), torch.rand(4 * size, 1)
arguments = (x8, w8, x_scale, w_scale, "sum", 0, 0, group, [2 * size, 2, 8], None, None, bf16)
got, names = called(fused.fused_scaled_matmul_reduce_scatter, *arguments)
assert names == ["scaled_matmul_reduce_scatter"] and got.shape == (2, 2, 8)
wanted = scattered((x8.double() * x_scale) @ (w8.double() * w_scale))
check_close("scaled", got.flatten(0, 1), complete(wanted))
for name in (
    "fused_all_gather_matmul",
    "fused_matmul_reduce_scatter",
    "fused_all_gather_scaled_matmul",
    "fused_scaled_matmul_reduce_scatter",
):
    kernels = torch._C._dispatch_dump(f"symm_mem::{name}").splitlines()
    assert any(line.startswith("CUDA") and "_async_tp.py" in line for line in kernels), kernels
tt.shutdown()
print("all equal")
