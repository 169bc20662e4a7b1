"""The decoder of llama.py: attention with rotary embeddings, gated feed-forward layers, and random weights."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F

EPSILON = 1e-5


def multiply_by(comm, group):
    """The product whose sum over all processes every process gets, as a function of x and a weight."""
    if comm == "tandem":
        import tandem.torch as tt

        return lambda x, weight: tt.matmul_all_reduce(x, weight.t(), group=group)

    if comm == "symm_mem":
        return multiply_in_symmetric_memory(group)

    def multiply(x, weight):
        y = F.linear(x, weight)
        dist.all_reduce(y)
        return y

    return multiply


def multiply_in_symmetric_memory(group):
    """The same by PyTorch's all-reduces in symmetric memory. The next call may overwrite a result."""
    import torch.distributed._symmetric_memory as symm_mem

    buffers = {}

    def multiply(x, weight):
        shape = len(x), len(weight)
        if shape not in buffers:
            buffers[shape] = symm_mem.empty(*shape, device=x.device, dtype=x.dtype)
            symm_mem.rendezvous(buffers[shape], group)
        y = torch.matmul(x, weight.t(), out=buffers[shape])
        if y.nbytes <= 512 << 10:
            return torch.ops.symm_mem.one_shot_all_reduce(y, "sum", group)
        return torch.ops.symm_mem.two_shot_all_reduce_(y, "sum", group)

    return multiply


def add_and_norm(comm, group, fuse):
    """The product, its sum over all processes added to x, and the norm of this, as a function of x, y and a weight."""
    if fuse:
        import tandem.torch as tt

        def fused(x, y, weight):
            normed, whole, _ = tt.all_reduce_norm(F.linear(y, weight), x, epsilon=EPSILON, group=group)
            return whole, normed

        return fused
    multiply = multiply_by(comm, group)

    def separate(x, y, weight):
        whole = x + multiply(y, weight)
        return whole, norm(whole)

    return separate


def norm(x):
    """The norm before each part of a layer, whose weights are ones."""
    return F.rms_norm(x, x.shape[-1:], eps=EPSILON)


def part(rows, columns, axis):
    """This process's part of a random matrix, which depends on the seed alone."""
    whole = torch.randn(rows, columns) * columns**-0.5
    own = whole.chunk(dist.get_world_size(), axis)[dist.get_rank()]
    return torch.nn.Parameter(own.contiguous(), requires_grad=False)


def rotate(x, positions):
    """Rotary embeddings."""
    head = x.shape[-1]
    angles = positions[:, None] * 500000.0 ** (-torch.arange(0, head, 2, dtype=torch.float32) / head)
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    turned = pairs * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.view_as_real(turned).flatten(-2).type_as(x)


class Attention(torch.nn.Module):
    """Attention of this process's heads, with the keys and values of all positions so far.

    The product with `out` is left to the layer.
    """

    def __init__(self, size):
        super().__init__()
        self.head = size.width // size.heads
        self.query = part(size.heads * self.head, size.width, 0)
        self.key, self.value = (part(size.kv_heads * self.head, size.width, 0) for _ in range(2))
        self.out = part(size.width, size.heads * self.head, 1)
        self.cache = None

    def forward(self, x, positions):
        q, k, v = (F.linear(x, w).unflatten(-1, (-1, self.head)) for w in (self.query, self.key, self.value))
        q, k = rotate(q, positions), rotate(k, positions)
        if self.cache is not None:
            k, v = (torch.cat(pair) for pair in zip(self.cache, (k, v), strict=True))
        self.cache = k, v
        q, k, v = (one.transpose(0, 1)[None] for one in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=True)
        return y[0].transpose(0, 1).flatten(1)


class Layer(torch.nn.Module):
    """Attention and a gated feed-forward part, each with the norm behind it."""

    def __init__(self, size, add):
        super().__init__()
        self.add, self.attention = add, Attention(size)
        self.gate, self.up = (part(size.hidden, size.width, 0) for _ in range(2))
        self.down = part(size.width, size.hidden, 1)

    def forward(self, x, y, positions):
        x, y = self.add(x, self.attention(y, positions), self.attention.out)
        return self.add(x, F.silu(F.linear(y, self.gate)) * F.linear(y, self.up), self.down)


class Llama(torch.nn.Module):
    """Words in, the scores of the next word out."""

    def __init__(self, size, add):
        super().__init__()
        self.embed = torch.nn.Parameter(torch.randn(size.words, size.width), requires_grad=False)
        self.head = torch.nn.Parameter(torch.randn(size.width, size.words), requires_grad=False)
        self.layers = torch.nn.ModuleList(Layer(size, add) for _ in range(size.layers))

    def forward(self, words, first):
        x = self.embed[words]
        y = norm(x)
        positions = torch.arange(first, first + len(words))
        for layer in self.layers:
            x, y = layer(x, y, positions)
        return y[-1] @ self.head
