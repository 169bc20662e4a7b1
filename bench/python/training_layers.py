"""Forward and backward of Llama 3 layers with sequence parallelism, beside NCCL and PyTorch's symmetric memory.

    TANDEM_LIBRARY=build/gpu/lib/libtandem_c.so tandem launch -n 2 python3 bench/python/training_layers.py
    tandem launch -n 2 python3 bench/python/training_layers.py --device cpu    a tiny size, as a test of it

A layer has 8,192 tokens of one sequence, and a process has its part of them between products. All ways keep the
gathered rows for backward, so nothing is gathered twice. `nccl` is NCCL and cuBLAS, and `symm_mem` has the operators that
PyTorch's async tensor parallelism puts in their place. Calls are eager and take turns. A time is that of the slowest
process: the median of the rounds.
"""

from __future__ import annotations

import argparse
import sys

import torch
import torch.nn.functional as F
from decoder import EPSILON, SIZES
from parallel import Nccl, Tandem, ways
from processes import Processes

ROWS, TOLERANCE = 8192, 0.06


class Column(torch.autograd.Function):
    """gather(x) @ weight."""

    @staticmethod
    def forward(ctx, way, x, weight):
        product, whole = way.gather(x, weight)
        ctx.way = way
        ctx.save_for_backward(whole, weight)
        return product

    @staticmethod
    def backward(ctx, grad):
        whole, weight = ctx.saved_tensors
        return None, ctx.way.scatter(grad.contiguous(), weight.t()), whole.t() @ grad


class Row(torch.autograd.Function):
    """This process's rows of the sum of x @ weight."""

    @staticmethod
    def forward(ctx, way, x, weight):
        ctx.way = way
        ctx.save_for_backward(x, weight)
        return way.scatter(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        x_grad, whole = ctx.way.gather(grad.contiguous(), weight.t())
        return None, x_grad, x.t() @ whole


class Layer:
    """A layer with gradients of its input and its weights."""

    def __init__(self, processes: Processes, size: str, rows: int) -> None:
        width, heads, kv_heads, hidden, _ = SIZES[size]
        parts, rank = processes.size, processes.rank
        self.width, self.head = width, width // heads
        self.heads, self.kv_heads = heads // parts, kv_heads // parts
        columns = (self.heads + 2 * self.kv_heads) * self.head
        shapes = [(columns, width), (width, width // parts), (2 * hidden // parts, width), (width, hidden // parts)]
        self.weights = [processes.random(100 * rank + i, *shape) for i, shape in enumerate(shapes)]
        self.norms = [torch.ones(width, device=processes.device, dtype=processes.dtype) for _ in range(2)]
        self.x = processes.random(50 + rank, rows // parts, width)
        self.grad = processes.random(60 + rank, rows // parts, width)
        self.leaves = [self.x, *self.weights, *self.norms]
        for one in self.leaves:
            one.requires_grad_()

    def column(self, way: Nccl, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return way.gather(x, weight.t())[0] if isinstance(way, Tandem) else Column.apply(way, x, weight.t())

    def row(self, way: Nccl, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return way.scatter(x, weight.t()) if isinstance(way, Tandem) else Row.apply(way, x, weight.t())

    def gradients(self, way: Nccl) -> list[torch.Tensor]:
        """Runs forward and backward."""
        attention, out, gates, down = self.weights
        y = F.rms_norm(self.x, (self.width,), self.norms[0], EPSILON)
        product = self.column(way, y, attention).unflatten(-1, (-1, self.head))
        q, k, v = (one.transpose(0, 1)[None] for one in product.split([self.heads, self.kv_heads, self.kv_heads], 1))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = self.x + self.row(way, z[0].transpose(0, 1).flatten(1), out)
        y = F.rms_norm(x, (self.width,), self.norms[1], EPSILON)
        gate, up = self.column(way, y, gates).chunk(2, -1)
        x = x + self.row(way, F.silu(gate) * up, down)
        return list(torch.autograd.grad(x, self.leaves, self.grad))


def measure(processes: Processes, layer: Layer, every: dict[str, Nccl], rounds: int) -> dict[str, object]:
    """Times and errors of the gradients by each way."""
    wanted = [one.float() for one in layer.gradients(every["nccl"])]
    forms, error = {}, {}
    for name, way in every.items():
        pairs = zip(layer.gradients(way), wanted, strict=True)
        error[name] = processes.largest(max(float((a.float() - b).abs().max() / b.abs().max()) for a, b in pairs))
        forms[name] = lambda way=way: layer.gradients(way)
    us = processes.in_turns(forms, rounds)
    return {"us": {name: one[0] for name, one in us.items()}, "spread": us, "error": error}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where the tensors are")
    parser.add_argument("--rounds", type=int, default=9, help="calls of each way")
    parser.add_argument("--out", help="a JSON file for the rows, which is written after each of them")
    options = parser.parse_args()
    processes, wrong = Processes(options.device), 0
    results, every = processes.head(), ways(processes)
    rows = ROWS if processes.on_gpus else 64
    for size in ("8b", "70b") if processes.on_gpus else ("tiny",):
        layer = Layer(processes, size, rows)
        row = {"size": size, "rows": rows} | measure(processes, layer, every, options.rounds)
        text = f"{size} forward and backward: {{times}} us"
        wrong += processes.add(results, row, options.out, TOLERANCE, text)
        del layer
    processes.end()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
