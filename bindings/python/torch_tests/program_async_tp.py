"""PyTorch's pass for async tensor parallelism ends in Tandem's operators, with the values of the separate ones."""

from __future__ import annotations

import warnings

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed._symmetric_memory as symm_mem
from common import check_close, join

warnings.simplefilter("ignore")  # newer versions have other names for the same collectives
rank, size = join()
group = dist.group.WORLD.group_name
tt.enable_async_tp()
tt.enable_async_tp()  # once more is no error


def called(function, *arguments, **named):
    """The result of a call, and the operators of Tandem that it ran."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        result = function(*arguments, **named)
    names = [event.name for event in profile.events() if event.name.startswith("tandem::")]
    return result, [name.removeprefix("tandem::") for name in names]


def gathered(x, axis=0):
    return functional.all_gather_tensor(x, axis, group)


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
    x, u = torch.randn(*shape), torch.randn(8, 16).t()
    v, w = torch.randn(24, 16).t(), torch.randn(16, 24).t()
    with symm_mem._test_mode():
        torch._dynamo.reset()
        compiled = torch.compile(function, options=options, fullgraph=True)
        compiled(x, u, v, w)
        got, names = called(compiled, x, u, v, w)
    reference = function(*(one.double() for one in (x, u, v, w)))
    if isinstance(got, torch.Tensor):
        got, reference = (got,), (reference,)
    for one, other in zip(got, reference):
        check_close(function, one, other.wait() if hasattr(other, "wait") else other)
    assert names == wanted, (function, names)

# Without the compiler: other axes, and the operators' own arguments.
fused = torch.ops.symm_mem
x, w = torch.randn(2, 4 * size, 16), torch.randn(16, 24)
for axis, keeps, wanted in ((1, False, [AG]), (0, False, [AG]), (1, True, [AG])):
    (kept, (got,)), names = called(fused.fused_all_gather_matmul, x, [w], axis, group, return_A=keeps)
    whole = gathered(x.double(), axis)
    assert names == wanted and (torch.equal(kept, whole.float()) if keeps else kept is None), names
    check_close("axis", got, whole @ w.double())
got, names = called(fused.fused_matmul_reduce_scatter, x, w, "sum", 1, group)
assert names == [RS] and got.is_contiguous()
check_close("axis", got, scattered(x.double() @ w.double(), "sum", 1))
for name in ("fused_all_gather_matmul", "fused_matmul_reduce_scatter"):
    kernels = torch._C._dispatch_dump(f"symm_mem::{name}").splitlines()
    assert any(line.startswith("CUDA") and "_async_tp.py" in line for line in kernels), kernels
tt.shutdown()
print("all equal")
