"""The experts of a layer, in place of its one feed-forward part: choices, weights, and products by PyTorch or Tandem.

Each process has an equal part of the experts. Where every process holds all rows, it computes those of its experts, and
all processes sum the results. Where rows are divided, they travel to their experts and back.

Each word has its experts in each layer, drawn at random, as in hash layers. Scores of a router give their weights. A
choice by scores would turn small differences between two ways into other experts, and scores could not be compared.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F


class Experts:
    """This process's experts of a layer."""

    def __init__(self, size, weights):
        self.all, self.here = size.experts, size.experts // dist.get_world_size()
        self.first = self.here * dist.get_rank()
        self.choices = weights.choices(size.words, size.experts, size.top_k)
        self.router = weights.whole(size.experts, size.width, size.width**-0.5)
        shapes = [(size.hidden, size.width)] * 2 + [(size.width, size.hidden)]
        own = []
        for number in range(size.experts):
            matrices = [weights.whole(*shape, shape[1] ** -0.5) for shape in shapes]  # also others': the seed goes on
            if self.first <= number < self.first + self.here:
                own.append((torch.cat(matrices[:2]), matrices[2]))
        self.gates, self.down = (torch.stack(one) for one in zip(*own, strict=True))  # gates and ups of each expert

    def choose(self, y, words):
        """The experts of each row, and their weights."""
        ids = self.choices[words]
        return ids, F.linear(y, self.router).float().gather(1, ids.long()).softmax(-1)

    def partial(self, rows, ids, weights):
        """The weighted sums of this process's experts, by PyTorch: rows by expert, two grouped products, and back."""
        own = ids - self.first
        is_here = (own >= 0) & (own < self.here)
        keys = torch.where(is_here, own, self.here).flatten()
        order = keys.argsort(stable=True)
        numbers = torch.arange(self.here, device=keys.device, dtype=keys.dtype)
        ends = torch.searchsorted(keys[order], numbers, right=True).to(torch.int32)
        sums = F.grouped_mm(rows[order // ids.shape[1]], self.gates.transpose(1, 2), offs=ends)
        gates, ups = sums.chunk(2, -1)
        y = F.grouped_mm(F.silu(gates) * ups, self.down.transpose(1, 2), offs=ends)[order.argsort()]
        y = torch.where(is_here[..., None], y.unflatten(0, ids.shape), 0)  # other rows of products are undefined
        return (y.float() * weights[..., None]).sum(1).type_as(rows)


class InTandem:
    """The same sums by dispatch_gemm and gemm_combine, with the activation in the first product."""

    def __init__(self, group):
        own = [dist.new_group([rank]) for rank in range(dist.get_world_size())]  # all processes make all groups
        self.group, self.own = group, own[dist.get_rank()]
        self.matrices = {}  # of a layer's experts: gates and ups in turns

    def _products(self, y, layer, add, ids, weights, **options):
        import tandem.torch as tt

        if layer not in self.matrices:
            self.matrices[layer] = tt.interleave_gates(*layer.gates.chunk(2, 1))
        routing = tt.route(ids, weights, hidden=y.shape[1], align=128, dtype=y.dtype, **options)
        h = tt.dispatch_gemm(y, routing, self.matrices[layer], activation="swiglu")
        return tt.gemm_combine(h, routing, layer.down, add)

    def partial(self, y, words, layer):
        """The weighted sums of this process's experts. Every process has all rows, so none of them travels."""
        ids, weights = layer.choose(y, words)
        own = ids - layer.first
        own = torch.where((own >= 0) & (own < layer.here), own, -1)
        return self._products(y, layer, None, own, weights, experts=layer.here, group=self.own)

    def divided(self, x, y, words, layer):
        """x plus the sums of all experts of this process's rows, which travel to their experts and back."""
        return self._products(y, layer, x, *layer.choose(y, words), experts=layer.all, group=self.group)
