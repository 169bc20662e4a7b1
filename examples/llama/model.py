"""The decoder of llama.py: attention with rotary embeddings, gated feed-forward layers or experts, and random weights.

`decode` may be captured in a CUDA graph. Keys and values lie in buffers of a fixed size, and the position is a word on
the device that each run advances. So a replay does what a call does.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from experts import Experts
from ways import DIVIDED_ROWS, norm, own_rows


class Cache:
    """Keys and values of `sequences` of equal length, and how long they are."""

    def __init__(self, size, sequences, capacity, like):
        heads = size.kv_heads // dist.get_world_size()
        shape = size.layers, sequences, heads, -(-capacity // 16) * 16, size.head
        self.keys, self.values = (torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in range(2))
        self.position = torch.zeros(1, dtype=torch.int64, device=like.device)

    def part(self, begin, end):
        """Some of the sequences, in the same memory."""
        made = object.__new__(Cache)
        made.keys, made.values, made.position = self.keys[:, begin:end], self.values[:, begin:end], self.position
        return made


class Weights:
    """This process's parts of random matrices, which depend on the seed alone."""

    def __init__(self, device, dtype):
        self.kind = {"device": device, "dtype": dtype}
        self.generator = torch.Generator(device).manual_seed(0)

    def whole(self, rows, columns, scale=1.0):
        return torch.randn(rows, columns, generator=self.generator, **self.kind) * scale

    def part(self, rows, columns, axis):
        own = self.whole(rows, columns, columns**-0.5).chunk(dist.get_world_size(), axis)[dist.get_rank()]
        return own.contiguous()

    def choices(self, words, experts, top_k):
        scores = torch.rand(words, experts, generator=self.generator, device=self.kind["device"])
        return scores.topk(top_k).indices.to(torch.int32)


def rotate(x, turns):
    """Rotary embeddings of rows x heads x size."""
    cos, sin = (one[:, None] for one in turns)
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).type_as(x)


class Layer:
    """This process's weights of a layer, as n x k."""

    def __init__(self, size, weights):
        self.head = size.head
        q, *kv = (weights.part(heads * self.head, size.width, 0) for heads in (size.heads, *[size.kv_heads] * 2))
        self.attention, self.own = torch.cat((q, *kv)), [len(q), len(kv[0]), len(kv[1])]
        self.out = weights.part(size.width, size.heads * self.head, 1)
        self.experts = Experts(size, weights) if size.experts > 0 else None
        if self.experts is None:
            self.gates = torch.cat([weights.part(size.hidden, size.width, 0) for _ in range(2)])
            self.down = weights.part(size.width, size.hidden, 1)

    def project(self, product, turns):
        """Queries, keys and values as rows x heads x size."""
        q, k, v = (one.unflatten(-1, (-1, self.head)) for one in product.split(self.own, -1))
        return rotate(q, turns), rotate(k, turns), v

    def forward(self, x, y, words, form, attend, turns):
        """Sums and their norm. Attention and the gated part each end with a sum over all processes."""
        product = form.enter(x, y, self.attention)
        x, y = form.add(x, attend(*self.project(product, turns)), self.out)
        if self.experts is not None:
            return form.mix(x, y, words, self.experts)
        gate, up = form.enter(x, y, self.gates).chunk(2, -1)
        return form.add(x, F.silu(gate) * up, self.down)


class Llama:
    """Words in, the scores of the next words out. `way` is one of ways.py."""

    def __init__(self, size, device, dtype):
        weights = Weights(device, dtype)
        self.embed = weights.whole(size.words, size.width)
        self.head = weights.whole(size.words, size.width)
        self.layers = [Layer(size, weights) for _ in range(size.layers)]
        even = torch.arange(0, size.head, 2, dtype=torch.float32, device=device)
        self.speeds = 500000.0 ** (-even / size.head)

    def run(self, words, positions, form, attend):
        """The last normed sums of these rows. `attend` takes the number of the layer, queries, keys and values."""
        x = self.embed[words]
        angles = positions[:, None] * self.speeds
        turns = torch.cos(angles), torch.sin(angles)
        y = norm(x)
        for number, layer in enumerate(self.layers):
            x, y = layer.forward(x, y, words, form, lambda *qkv, number=number: attend(number, *qkv), turns)
        return norm(x) if y is None else y

    def prefill(self, words, cache, way):
        """Scores of the word behind all words of one sequence, whose keys and values go to the cache.

        The processes divide the rows of a long prompt. The last process then has the last row.
        """

        def attend(number, q, k, v):
            q, k, v = (one.transpose(0, 1) for one in (q, k, v))
            cache.keys[number, 0, :, : len(words)], cache.values[number, 0, :, : len(words)] = k, v
            y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=True)
            return y[0].transpose(0, 1).flatten(1)

        processes = dist.get_world_size()
        is_divided = processes > 1 and len(words) >= DIVIDED_ROWS and len(words) % processes == 0
        rows, form = (own_rows(words), way.divided) if is_divided else (words, way.whole)
        last = self.run(rows, torch.arange(len(words), device=words.device), form, attend)[-1:].clone()
        if is_divided and way.communicates:
            dist.broadcast(last, processes - 1)
        cache.position.fill_(len(words))
        return F.linear(last, self.head)

    def decode(self, words, cache, way):
        """Scores behind one more word of each sequence."""
        allowed = torch.arange(cache.keys.shape[3], device=words.device) <= cache.position

        def attend(number, q, k, v):
            keys, values = cache.keys[number], cache.values[number]
            keys.index_copy_(2, cache.position, k.unsqueeze(2))
            values.index_copy_(2, cache.position, v.unsqueeze(2))
            # The queries that share keys stand as rows of one head.
            q = q.unflatten(1, (keys.shape[1], -1))
            return F.scaled_dot_product_attention(q, keys, values, attn_mask=allowed[None, None, None]).flatten(1)

        y = self.run(words, cache.position.expand(len(words)), way.whole, attend)
        cache.position.add_(1)
        return F.linear(y, self.head)
