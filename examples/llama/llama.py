"""A decoder in the shape of Llama 3 with tensor parallelism: random weights, greedy tokens.

    tandem launch -n 2 python3 examples/llama/llama.py --comm tandem      the same tokens with --comm gloo
    python3 examples/llama/llama.py --simulate h200x8 --size 70b          a prediction of the time of a step

Each process has its heads and its part of the feed-forward layers. With `gloo` a matrix product and an all-reduce
follow each other, with `tandem` one operator does both.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import time


@dataclasses.dataclass(frozen=True)
class Size:
    """The dimensions of a model."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    words: int


SIZES = {
    "tiny": Size(2, 96, 12, 6, 192, 256),
    "8b": Size(32, 4096, 32, 8, 14336, 128256),
    "70b": Size(80, 8192, 64, 8, 28672, 128256),
}


def simulate(size, machine, rows):
    """Prints the predicted time of the matrix products and collectives of one step."""
    import tandem

    machines = {one.name: one.pes_per_node for one in tandem.machines()}
    if machine not in machines:
        raise SystemExit(f"--simulate: {machine} given, allowed is one of {', '.join(machines)}")
    pes = machines[machine]
    head = size.width // size.heads
    # compute_only is the product alone: these two need no communication.
    products = {
        "query, key, value": ((size.heads + 2 * size.kv_heads) * head, size.width, "compute_only"),
        "attention output, all-reduce": (size.width, size.heads * head, None),
        "gate and up": (2 * size.hidden, size.width, "compute_only"),
        "down, all-reduce": (size.width, size.hidden, None),
    }
    total = 0.0
    print(f"{machine}: {pes} PEs, {rows} rows; predictions in us for each layer")
    for name, (n, k, form) in products.items():
        operator = tandem.simulate.all_gather_gemm if form else tandem.simulate.gemm_all_reduce
        result = operator(rows, n, k, machine=machine, pes=pes, algorithm=form)
        total += result.time_us
        print(f"{result.time_us:10.1f}  {name}")
    print(f"{total * size.layers / 1000:10.2f} ms a step of {size.layers} layers, without attention, norms and words")


def build(size, comm, group):
    """The model of this process, as a torch module."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    pes, pe = dist.get_world_size(), dist.get_rank()
    head = size.width // size.heads
    if comm == "tandem":
        import tandem.torch as tt

        def multiply(x, weight):
            return tt.matmul_all_reduce(x, weight.t(), group=group)
    else:

        def multiply(x, weight):
            y = F.linear(x, weight)
            dist.all_reduce(y)
            return y

    def part(rows, columns, axis):
        """This process's part of a random matrix that depends on the call alone."""
        whole = torch.randn(rows, columns) * columns**-0.5
        return torch.nn.Parameter(whole.chunk(pes, axis)[pe].contiguous(), requires_grad=False)

    class Attention(torch.nn.Module):
        """Attention of this process's heads, with the keys and values of all positions so far."""

        def __init__(self):
            super().__init__()
            self.query = part(size.heads * head, size.width, 0)
            self.key, self.value = (part(size.kv_heads * head, size.width, 0) for _ in range(2))
            self.out = part(size.width, size.heads * head, 1)
            self.cache = None

        def forward(self, x, positions):
            q, k, v = (F.linear(x, w).unflatten(-1, (-1, head)) for w in (self.query, self.key, self.value))
            q, k = rotate(q, positions), rotate(k, positions)
            if self.cache is not None:
                k, v = (torch.cat(pair) for pair in zip(self.cache, (k, v), strict=True))
            self.cache = k, v
            q, k, v = (one.transpose(0, 1)[None] for one in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=True)
            return multiply(y[0].transpose(0, 1).flatten(1), self.out)

    def rotate(x, positions):
        """Rotary embeddings."""
        angles = positions[:, None] * 500000.0 ** (-torch.arange(0, head, 2) / head)
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angles), angles)[:, None]
        return torch.view_as_real(turned).flatten(-2)

    class Layer(torch.nn.Module):
        """Attention and a gated feed-forward part."""

        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.gate, self.up = (part(size.hidden, size.width, 0) for _ in range(2))
            self.down = part(size.width, size.hidden, 1)

        def forward(self, x, positions):
            x = x + self.attention(F.rms_norm(x, (size.width,)), positions)
            y = F.rms_norm(x, (size.width,))
            return x + multiply(F.silu(F.linear(y, self.gate)) * F.linear(y, self.up), self.down)

    class Llama(torch.nn.Module):
        """Words in, the scores of the next word out."""

        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Parameter(torch.randn(size.words, size.width), requires_grad=False)
            self.head = torch.nn.Parameter(torch.randn(size.width, size.words), requires_grad=False)
            self.layers = torch.nn.ModuleList(Layer() for _ in range(size.layers))

        def forward(self, words, first):
            x = self.embed[words]
            positions = torch.arange(first, first + len(words))
            for layer in self.layers:
                x = layer(x, positions)
            return F.rms_norm(x[-1], (size.width,)) @ self.head

    torch.manual_seed(0)
    return Llama()


def generate(arguments):
    """Prints the tokens that follow a prompt, and their rate."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(
        "gloo",
        init_method=arguments.rendezvous,
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    size = SIZES[arguments.size]
    if size.kv_heads % dist.get_world_size() != 0:
        raise SystemExit(f"{dist.get_world_size()} processes given, allowed are divisors of {size.kv_heads} heads")
    model = build(size, arguments.comm, dist.group.WORLD.group_name)
    words = torch.arange(arguments.prompt) * 7 % size.words
    tokens, times, done = [], [], 0
    for _ in range(arguments.tokens):
        begin = time.perf_counter()
        scores = model(words, done)
        done += len(words)
        words = scores.argmax()[None]
        tokens.append(int(words))
        times.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print(*tokens)
        # The first steps prepare plans: for the prompt, and for one row.
        middle = statistics.median(times[2:] or times)
        print(f"{arguments.comm}: {1 / middle:.1f} tokens/s, {1000 * middle:.2f} ms a token (median)")
    if arguments.comm == "tandem":
        import tandem.torch as tt

        tt.shutdown()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny", help="dimensions; weights are random")
    parser.add_argument("--comm", choices=("gloo", "tandem"), default="tandem", help="who communicates")
    parser.add_argument("--prompt", type=int, default=16, help="words of the prompt")
    parser.add_argument("--tokens", type=int, default=32, help="tokens to generate")
    parser.add_argument("--rendezvous", default="env://", help="where torch's processes meet")
    parser.add_argument("--simulate", metavar="MACHINE", help="predict a step on a machine model instead")
    parser.add_argument("--rows", type=int, default=8, help="rows of the predicted step")
    arguments = parser.parse_args()
    if arguments.simulate:
        simulate(SIZES[arguments.size], arguments.simulate, arguments.rows)
    else:
        generate(arguments)


main()
