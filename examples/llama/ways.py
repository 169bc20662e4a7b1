"""Who communicates: the ways to do what ends each half of a layer.

Each is a function of x, y and a weight. It returns x plus the sum of y @ weight.t() over all processes, and its norm.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F

EPSILON = 1e-5
ONE_SHOT_BYTES = 512 << 10  # symm_mem: more are reduced by two shots
ALONE = "alone"
"""The way without communication: each process takes its partial sums as they are."""


def norm(x):
    """The norm before each part of a layer, whose weights are ones."""
    return F.rms_norm(x, x.shape[-1:], eps=EPSILON)


def then_norm(multiply):
    """A product that is summed over all processes, with the addition and the norm behind it."""

    def add(x, y, weight):
        whole = x + multiply(y, weight)
        return whole, norm(whole)

    return add


def reduced(y, weight):
    """The product, and torch.distributed's all-reduce: NCCL's on GPUs, Gloo's on CPUs."""
    product = F.linear(y, weight)
    dist.all_reduce(product)
    return product


def in_symmetric_memory(group):
    """The same by PyTorch's all-reduces in symmetric memory. The next call may overwrite a result."""
    import torch.distributed._symmetric_memory as symm_mem

    buffers = {}

    def multiply(y, weight):
        shape = len(y), len(weight)
        if shape not in buffers:
            buffers[shape] = symm_mem.empty(*shape, device=y.device, dtype=y.dtype)
            symm_mem.rendezvous(buffers[shape], group)
        product = torch.matmul(y, weight.t(), out=buffers[shape])
        if product.nbytes <= ONE_SHOT_BYTES:
            return torch.ops.symm_mem.one_shot_all_reduce(product, "sum", group)
        return torch.ops.symm_mem.two_shot_all_reduce_(product, "sum", group)

    return multiply


def tandem_ways(group, fuse):
    """One operator for product and all-reduce; with `fuse` also one for all-reduce, addition and norm."""
    import tandem.torch as tt

    def fused(x, y, weight):
        normed, whole, _ = tt.all_reduce_norm(F.linear(y, weight), x, epsilon=EPSILON, group=group)
        return whole, normed

    made = {"tandem": then_norm(lambda y, weight: tt.matmul_all_reduce(y, weight.t(), group=group))}
    return made | {"tandem --fuse": fused} if fuse else made


def ways(names, fuse):
    """The ways of these names, in their order, and the one without communication."""
    group, made = dist.group.WORLD.group_name, {}
    for name in names:
        if name == "tandem":
            made |= tandem_ways(group, fuse)
        else:
            made[name] = then_norm(in_symmetric_memory(group) if name == "symm_mem" else reduced)
    return made | {ALONE: then_norm(F.linear)}
