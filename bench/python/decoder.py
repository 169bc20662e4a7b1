"""Steps of a decoder in the shape of Llama 3 with tensor parallelism, beside NCCL and PyTorch's symmetric memory.

    TANDEM_LIBRARY=build/gpu/lib/libtandem_c.so tandem launch -n 2 python3 bench/python/decoder.py --out FILE.json
    tandem launch -n 2 python3 bench/python/decoder.py --device cpu    a tiny size without graphs, as a test of it

A decode of R rows is one token of R sequences with 1,024 keys each; every process holds all rows. A prefill of R rows
is one sequence, and outside of products a process has its part of the rows. All ways have the same weights, attention
and norms, without rotary embeddings and words. Each step is a CUDA graph of `--layers` layers. Graphs take turns, and a
time is that of the slowest process: the median of the rounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from parallel import Nccl, ways
from processes import Processes

KEYS, EPSILON, TOLERANCE = 1024, 1e-5, 0.06
SIZES = {  # width, heads, heads of keys and values, hidden size, all layers
    "8b": (4096, 32, 8, 14336, 32),
    "70b": (8192, 64, 8, 28672, 80),
    "tiny": (128, 8, 4, 256, 2),
}
DECODES, PREFILLS = (1, 8, 32, 128), (2048, 8192)


@dataclass
class Layer:
    """This process's weights of a layer, as k x n."""

    attention: torch.Tensor
    out: torch.Tensor
    gates: torch.Tensor
    down: torch.Tensor


class Decoder:
    """Layers of one size, and keys and values of earlier tokens for up to `sequences`."""

    def __init__(self, processes: Processes, size: str, layers: int, sequences: int, keys: int) -> None:
        width, heads, kv_heads, hidden, _ = SIZES[size]
        self.width, self.head, parts, rank = width, width // heads, processes.size, processes.rank
        self.heads, self.kv_heads = heads // parts, kv_heads // parts
        columns = (self.heads + 2 * self.kv_heads) * self.head
        shapes = [(columns, width), (width, width // parts), (2 * hidden // parts, width), (width, hidden // parts)]
        seeds = range(100 * rank, 100 * rank + len(shapes))
        self.layers = [
            Layer(*(processes.random(seed + 10 * i, *shape).t() for seed, shape in zip(seeds, shapes, strict=True)))
            for i in range(layers)
        ]
        cached = sequences, self.kv_heads, keys, self.head
        self.caches = [[processes.random(i + j, *cached) for j in (50, 70)] for i in range(layers)]
        self.norm = torch.ones(width, device=processes.device, dtype=processes.dtype)

    def attend(self, product: torch.Tensor, cache: list[torch.Tensor] | None) -> torch.Tensor:
        """Attention of this process's heads: of one token beside those of a cache, or of a whole sequence."""
        rows = product.shape[0]
        given = product.view(rows, -1, self.head).split([self.heads, self.kv_heads, self.kv_heads], 1)
        if cache is None:
            q, k, v = (one.transpose(0, 1)[None] for one in given)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return y[0].transpose(0, 1).reshape(rows, -1)
        keys, values = (one[:rows] for one in cache)
        keys[:, :, -1], values[:, :, -1] = given[1], given[2]
        y = F.scaled_dot_product_attention(given[0].unsqueeze(2), keys, values, enable_gqa=True)
        return y.reshape(rows, -1)

    def step(self, way: Nccl, x: torch.Tensor, decodes: bool) -> torch.Tensor:
        """The last layer's sums, of all rows for a decode, else of this process's."""
        y = F.rms_norm(x, (self.width,), self.norm, EPSILON)
        for layer, cache in zip(self.layers, self.caches, strict=True):
            product = y @ layer.attention if decodes else way.gather(y, layer.attention)[0]
            z = self.attend(product, cache if decodes else None)
            x = x + (way.reduce if decodes else way.scatter)(z, layer.out)
            y = F.rms_norm(x, (self.width,), self.norm, EPSILON)
            product = y @ layer.gates if decodes else way.gather(y, layer.gates)[0]
            gate, up = product.chunk(2, -1)
            x = x + (way.reduce if decodes else way.scatter)(F.silu(gate) * up, layer.down)
            y = F.rms_norm(x, (self.width,), self.norm, EPSILON)
        return x


def measure(
    processes: Processes, decoder: Decoder, every: dict[str, Nccl], is_decode: bool, rows: int, rounds: int
) -> dict[str, object]:
    """Times and errors of a step of so many rows, by each way."""
    own = rows if is_decode else rows // processes.size
    x = processes.random(7 if is_decode else processes.rank, own, decoder.width)
    wanted = decoder.step(every["nccl"], x, is_decode).float()
    forms, error = {}, {}
    for name, way in every.items():
        difference = (decoder.step(way, x, is_decode).float() - wanted).abs().max()
        error[name] = processes.largest(float(difference / wanted.abs().max()))
        forms[name] = processes.graph(lambda way=way: decoder.step(way, x, is_decode))
    us = processes.in_turns(forms, rounds)
    row = {"step": "decode" if is_decode else "prefill", "rows": rows, "layers": len(decoder.layers)}
    return row | {"us": {name: one[0] for name, one in us.items()}, "spread": us, "error": error}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where the tensors are")
    parser.add_argument("--layers", type=int, default=8, help="layers of a step, at most those of the model")
    parser.add_argument("--rounds", type=int, default=9, help="replays of each graph")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after so many")
    parser.add_argument("--out", help="a JSON file for the rows, which is written after each of them")
    options = parser.parse_args()
    begin, wrong = time.monotonic(), 0
    processes = Processes(options.device)
    results, on_gpus, every = processes.head(), processes.on_gpus, ways(processes)
    decodes, prefills = (DECODES, PREFILLS) if on_gpus else ((1, 3), (32,))
    for size in ("8b", "70b") if on_gpus else ("tiny",):
        layers = max(1, min(options.layers, SIZES[size][-1]))
        decoder = Decoder(processes, size, layers, max(decodes), KEYS if on_gpus else 16)
        for rows in (*decodes, *prefills):
            if processes.largest(time.monotonic() - begin) > options.seconds:
                continue
            with torch.no_grad():
                row = {"size": size} | measure(processes, decoder, every, rows in decodes, rows, options.rounds)
            rate = rows / row["us"]["tandem"] * 1e6
            text = f"{size} {row['step']} {rows}: {{times}} us, {layers} layers; {rate:.0f} rows/s"
            wrong += processes.add(results, row, options.out, TOLERANCE, text)
        del decoder
    processes.end()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
