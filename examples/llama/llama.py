"""A decoder in the shape of Llama 3 with tensor parallelism: random weights, greedy tokens.

    tandem launch -n 2 python3 examples/llama/llama.py --comm tandem      the same tokens with --comm gloo
    tandem launch -n 2 python3 examples/llama/llama.py --comm symm_mem --size 8b     or nccl, or tandem --device cuda
    python3 examples/llama/llama.py --simulate h200x8 --size 70b          a prediction of the time of a step

Each process has its heads and its part of the feed-forward layers. With `gloo`, `nccl` and `symm_mem` a matrix product
and an all-reduce follow each other, with `tandem` one operator does both. With `--fuse` one operator does the
all-reduce with the residual and the norm behind it.
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


def device_of(arguments):
    """The kind of device for the tensors, after its checks."""
    needed = {"gloo": "cpu", "nccl": "cuda", "symm_mem": "cuda"}.get(arguments.comm)
    device = arguments.device or needed or "cpu"
    if needed not in (None, device):
        raise SystemExit(f"--device: {device} given, allowed with --comm {arguments.comm} is {needed}")
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device: cuda given, allowed without a GPU is cpu, with --comm gloo or tandem")
    return device


def generate(arguments):
    """Prints the tokens that follow a prompt, and their rate."""
    import torch  # not for predictions, which need no torch
    import torch.distributed as dist
    from model import Llama, add_and_norm

    device = device_of(arguments)
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
        torch.set_default_device("cuda")
        torch.set_default_dtype(torch.bfloat16)
    dist.init_process_group(
        "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl",
        init_method=arguments.rendezvous,
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    size = SIZES[arguments.size]
    size = dataclasses.replace(size, layers=arguments.layers or size.layers)
    if size.kv_heads % dist.get_world_size() != 0:
        raise SystemExit(f"{dist.get_world_size()} processes given, allowed are divisors of {size.kv_heads} heads")
    torch.manual_seed(0)
    add = add_and_norm(arguments.comm, dist.group.WORLD.group_name, arguments.fuse)
    model = Llama(size, add)
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
        name = arguments.comm + " --fuse" * arguments.fuse
        print(f"{name}: {1 / middle:.1f} tokens/s, {1000 * middle:.2f} ms a token (median)")
    if arguments.comm == "tandem":
        import tandem.torch as tt

        tt.shutdown()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny", help="dimensions; weights are random")
    comms = ("gloo", "nccl", "symm_mem", "tandem")
    parser.add_argument("--comm", choices=comms, default="tandem", help="who communicates")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where tensors are (default: cpu where it can be)")
    parser.add_argument("--layers", type=int, metavar="N", help="number of layers (default: all of the size)")
    parser.add_argument("--fuse", action="store_true", help="tandem: one operator for all-reduce, residual and norm")
    parser.add_argument("--prompt", type=int, default=16, help="words of the prompt")
    parser.add_argument("--tokens", type=int, default=32, help="tokens to generate")
    parser.add_argument("--rendezvous", default="env://", help="where torch's processes meet")
    parser.add_argument("--simulate", metavar="MACHINE", help="predict a step on a machine model instead")
    parser.add_argument("--rows", type=int, default=8, help="rows of the predicted step")
    arguments = parser.parse_args()
    if arguments.fuse and (arguments.comm != "tandem" or arguments.simulate):
        raise SystemExit("--fuse: given without a run of --comm tandem, allowed is with one")
    if arguments.layers is not None and arguments.layers < 1:
        raise SystemExit(f"--layers: {arguments.layers} given, allowed is 1 or more")
    if arguments.simulate:
        simulate(SIZES[arguments.size], arguments.simulate, arguments.rows)
    else:
        generate(arguments)


main()
