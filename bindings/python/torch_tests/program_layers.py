"""Parallel layers beside torch.nn.Linear in float64, and their state dicts."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.nn.functional as F
from common import DEVICE, check_close, join

rank, size = join()
HIDDEN, WIDE = 8 * size, 16 * size


def check(sequence_parallel, biased, activation, dtype):
    """A block of two layers: this PE's part of values and gradients is that of the whole block."""
    torch.manual_seed(1)
    first = torch.nn.Linear(HIDDEN, WIDE, biased, dtype=torch.float64)
    second = torch.nn.Linear(WIDE, HIDDEN, biased, dtype=torch.float64)
    options = {"sequence_parallel": sequence_parallel}
    column = tt.ColumnParallelLinear.from_linear(
        first.to(dtype), activation=activation, keep_gathered=sequence_parallel and biased, **options
    )
    row = tt.RowParallelLinear.from_linear(second.to(dtype), **options)
    first, second = first.double(), second.double()
    whole = torch.randn(2 * size, 3, HIDDEN).to(dtype)
    wanted_x = whole.double().clone().requires_grad_()
    wanted = second(getattr(F, activation)(first(wanted_x)))
    x = (whole.chunk(size)[rank] if sequence_parallel else whole).detach().clone().requires_grad_()
    y = row(column(x))

    def part(z):
        return z.chunk(size)[rank] if sequence_parallel else z

    check_close("y", y.detach(), part(wanted).detach())
    weights = torch.randn_like(wanted).to(dtype)
    (wanted * weights).sum().backward()
    (y * part(weights)).sum().backward()
    check_close("x", x.grad, part(wanted_x.grad))
    check_close("column", column.weight.grad, first.weight.grad.chunk(size)[rank])
    check_close("row", row.weight.grad, second.weight.grad.chunk(size, 1)[rank])
    if biased:
        check_close("column bias", column.bias.grad, first.bias.grad.chunk(size)[rank])
        check_close("row bias", row.bias.grad, second.bias.grad)
    for layer, linear in ((column, first), (row, second)):
        state = layer.linear_state_dict()
        linear.load_state_dict(state)
        for name, value in layer.state_dict().items():
            assert torch.equal(value, layer._part(name, state[name]))
        layer.load_state_dict(layer.state_dict())  # a part is as good as the whole


for dtype in (torch.float64, torch.float32, torch.bfloat16):
    for sequence_parallel in (True, False):
        for biased in (True, False):
            check(sequence_parallel, biased, "gelu" if biased else "silu", dtype)
memory = tt.world_of(device=DEVICE).zeros(4, "bfloat16")
for view in (torch.from_dlpack(memory.local), memory.local.torch()):
    assert view.dtype == torch.bfloat16
    view += 1
assert memory.local.torch().eq(2).all()
del view
memory.free()
tt.shutdown()
print("all equal")
