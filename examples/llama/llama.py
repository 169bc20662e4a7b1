"""A decoder in the shape of Llama 3, Mixtral or Qwen3 with tensor parallelism: random weights, greedy tokens.

    tandem launch -n 2 python3 examples/llama/llama.py --comm gloo,tandem --fuse      on CPUs, a tiny size
    tandem launch -n 2 python3 examples/llama/llama.py --comm nccl,symm_mem,tandem --size 8b,70b --layers 4 \\
        --batch 1,8,32,128 --prompt 1024 --prefill 2048,8192 --out FILE.json          on GPUs, a process for each
    tandem launch -n 2 python3 examples/llama/llama.py --comm gloo,tandem --size tiny-experts
    tandem launch -n 2 python3 examples/llama/llama.py --comm nccl,tandem --size mixtral,qwen3-30b --layers 4 \\
        --batch 1,8,32,128 --prompt 1024 --prefill 2048,8192                          layers with experts on GPUs
    python3 examples/llama/llama.py --simulate h200x8 --size 70b                      a prediction of a step's time

Each process has its heads and its part of the feed-forward layers. With `gloo` and `nccl` a matrix product and a
collective follow each other. With `symm_mem` PyTorch's fused operators do both where it has them, with `tandem` one
operator does both everywhere. With `--fuse` one operator does the all-reduce with the residual and the norm behind it.
Another one does the norm with the gather and the product behind it.

A decode and a short prompt end each half of a layer with an all-reduce. The processes divide the rows of a long prompt
between the products, so an all-gather begins each half and a reduce-scatter ends it.

Layers with experts (expert parallelism) move divided rows to their experts and back. They use an all-gather and a
reduce-scatter with PyTorch's permutations and grouped products, or Tandem's dispatch_gemm and gemm_combine. Rows that every process
has do not travel. An all-reduce sums the results. experts.py explains which experts a word has.

All ways run in turns, step by step, on the same weights. Each step takes the words that the first way has chosen, and
the tokens that the others choose are compared. On GPUs each step is a captured graph.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys


@dataclasses.dataclass(frozen=True)
class Size:
    """The dimensions of a model."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    words: int
    head: int
    experts: int = 0
    top_k: int = 0


SIZES = {
    "tiny": Size(2, 96, 12, 6, 192, 256, 8),
    "tiny-experts": Size(2, 96, 12, 6, 48, 256, 8, experts=12, top_k=3),
    "8b": Size(32, 4096, 32, 8, 14336, 128256, 128),
    "70b": Size(80, 8192, 64, 8, 28672, 128256, 128),
    "mixtral": Size(32, 4096, 32, 8, 14336, 32000, 128, experts=8, top_k=2),
    "qwen3-30b": Size(48, 2048, 32, 4, 768, 151936, 128, experts=128, top_k=8),
}


def simulate(size, machine, rows):
    """Prints the predicted time of the matrix products and collectives of one step."""
    import tandem

    machines = {one.name: one.pes_per_node for one in tandem.machines()}
    if machine not in machines:
        raise SystemExit(f"--simulate: {machine} given, allowed is one of {', '.join(machines)}")
    pes = machines[machine]
    head = size.head
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


def check_device(arguments):
    """The kind of device for the tensors. It needs torch, and may leave a way out."""
    needed = {name: {"gloo": "cpu", "nccl": "cuda", "symm_mem": "cuda"}.get(name) for name in arguments.comm}
    device = arguments.device or next(filter(None, needed.values()), "cpu")
    for name, one in needed.items():
        if one not in (None, device):
            raise SystemExit(f"--device: {device} given, allowed with --comm {name} is {one}")
    import torch  # not for predictions, which need no torch

    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device: cuda given, allowed without a GPU is cpu, with --comm gloo or tandem")
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes == 1 and "symm_mem" in arguments.comm:
        print("left out with one process: symm_mem")
        arguments.comm.remove("symm_mem")
        if not arguments.comm:
            raise SystemExit("--comm: symm_mem given, allowed with one process are nccl and tandem")
    for name in arguments.size:
        for count, kind in ((SIZES[name].kv_heads, "heads"), (SIZES[name].experts, "experts")):
            if count % processes != 0:
                raise SystemExit(f"{processes} processes given, allowed are divisors of {count} {kind}")
    return device


def names(*allowed):
    """A parser of names with commas between them."""

    def parse(text):
        given = text.split(",")
        if not set(given) <= set(allowed) or len(set(given)) < len(given):
            raise argparse.ArgumentTypeError(f"{text} given, allowed are {', '.join(allowed)}, each once")
        return given

    return parse


def numbers(text):
    """A parser of numbers with commas between them."""
    given = text.split(",")
    if not all(one.isdecimal() and int(one) > 0 for one in given):
        raise argparse.ArgumentTypeError(f"{text} given, allowed are numbers of 1 or more, with commas between them")
    return [int(one) for one in given]


def parsed():
    """The options, after the checks that need no torch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=names(*SIZES), default="tiny", help=f"dimensions: {', '.join(SIZES)}")
    comms = names("gloo", "nccl", "symm_mem", "tandem")
    parser.add_argument("--comm", type=comms, default="tandem", help="who communicates; several are compared")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where tensors are (default: cpu where it can be)")
    parser.add_argument("--layers", type=int, metavar="N", help="number of layers (default: all of the size)")
    parser.add_argument("--fuse", action="store_true", help="also tandem's operator for all-reduce, residual and norm")
    parser.add_argument("--batch", type=numbers, default="1", help="sequences of a decode: 1,8,32 for three rows")
    parser.add_argument("--prompt", type=int, default=16, help="words of each prompt")
    parser.add_argument("--tokens", type=int, default=32, help="decode steps of a row")
    parser.add_argument("--prefill", type=numbers, default=[], help="words of timed prefills: 2048,8192 for two rows")
    parser.add_argument("--rounds", type=int, default=5, help="runs of a prefill by each way")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after so many")
    parser.add_argument("--out", help="a JSON file for the rows, which is written after each of them")
    parser.add_argument("--rendezvous", default="env://", help="where torch's processes meet")
    parser.add_argument("--simulate", metavar="MACHINE", help="predict a step on a machine model instead")
    parser.add_argument("--rows", type=int, default=8, help="rows of the predicted step")
    arguments = parser.parse_args()
    if arguments.fuse and ("tandem" not in arguments.comm or arguments.simulate):
        raise SystemExit("--fuse: given without a run of --comm tandem, allowed is with one")
    with_experts = [name for name in arguments.size if SIZES[name].experts > 0]
    if arguments.simulate and with_experts:
        raise SystemExit(f"--size: {with_experts[0]} given, allowed with --simulate are sizes without experts")
    for name in ("layers", "prompt", "tokens", "rounds", "rows"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise SystemExit(f"--{name}: {value} given, allowed is 1 or more")
    return arguments


def main():
    arguments = parsed()
    if arguments.simulate:
        for name in arguments.size:
            simulate(SIZES[name], arguments.simulate, arguments.rows)
        return 0
    device = check_device(arguments)
    import torch
    from report import run

    with torch.no_grad():
        return run(arguments, SIZES, device)


sys.exit(main())
