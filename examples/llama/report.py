"""The processes of llama.py, and their results as text and as JSON."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from compare import Comparison
from steps import Clock

SHARE = "communication: the part of a time that the same step without it does not need, in turns with the others"


def join(device, rendezvous):
    """Joins the other processes; one that nobody launched is alone. Returns this process's device."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    place = {"store": dist.HashStore()} if "RANK" not in os.environ else {"init_method": rendezvous}
    if device == "cuda":
        local = int(os.environ.get("LOCAL_RANK", rank))
        if local >= torch.cuda.device_count():
            raise SystemExit(f"process {rank}: GPU {local} given, allowed are {torch.cuda.device_count()} GPUs here")
        torch.cuda.set_device(local)
    dist.init_process_group("gloo" if device == "cpu" else "cpu:gloo,cuda:nccl", rank=rank, world_size=size, **place)
    return torch.device(device, torch.cuda.current_device()) if device == "cuda" else torch.device(device)


def rows_of(arguments, size, device, clock, begin):
    """All rows of a model of one size, as long as there is time."""
    compared = Comparison(arguments, size, device, clock)

    def in_time(what):
        late = clock.largest(time.monotonic() - begin) > arguments.seconds
        if late and dist.get_rank() == 0:
            print(f"left out after --seconds {arguments.seconds:g}: {what}", flush=True)
        return not late

    if in_time("decodes"):
        for row in compared.decodes():
            yield row
            if not in_time(f"all after decode of {row['rows']}"):
                return
    for rows in arguments.prefill:
        if in_time(f"prefill of {rows}"):
            yield compared.prefill(rows)


def wrong_ways(row):
    """The ways whose scores are wrong."""
    cached = row.get("error_of_cache", {})
    return [name for name, error in row["error"].items() if max(error, cached.get(name, 0.0)) > row["tolerance"]]


def show(row):
    """Prints the lines of a row."""
    print(f"{row['size']}, {row['layers']} layers, {row['step']} of {row['rows']}:")
    unit = "token" if row["step"] == "decode" else "prompt"
    for name, rate in row["tokens_per_s"].items():
        median, least, most = (us / 1000 for us in row["spread"][name])
        print(
            f"{name}: {rate:.1f} tokens/s, {median:.3f} ms a {unit} ({least:.3f} to {most:.3f}), "
            f"{100 * row['communication'][name]:.1f} % communication, "
            f"{row['same_tokens'][name]} of {row['tokens']} tokens the same"
            + "; WRONG scores" * (name in wrong_ways(row)),
            flush=True,
        )


def release(comms, on_gpus):
    """Frees what a model left: its graphs, and the worlds whose plans they held."""
    if on_gpus:
        torch.cuda.synchronize()
    gc.collect()
    if "tandem" in comms:
        import tandem.torch as tt

        tt.shutdown()
    if on_gpus:
        torch.cuda.empty_cache()


def run(arguments, sizes, device_type):
    """Prints all rows, with the tokens of one sequence of each size, and writes them. Returns the exit code."""
    begin, wrong = time.monotonic(), []
    device = join(device_type, arguments.rendezvous)
    clock, talks = Clock(device), dist.get_rank() == 0
    results = {"command": " ".join(sys.argv), "torch": torch.__version__, "processes": dist.get_world_size()}
    if device.type == "cuda":
        results |= {"gpu": torch.cuda.get_device_name(), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    results |= {"predicted": False, "communication": SHARE, "rows": []}
    for name in arguments.size:
        size = dataclasses.replace(sizes[name], layers=arguments.layers or sizes[name].layers)
        is_first = True
        for row in rows_of(arguments, size, device, clock, begin):
            row = {"size": name} | row
            results["rows"].append(row)
            wrong += wrong_ways(row)
            if talks:
                if is_first and "taken" in row:
                    print(*row["taken"])
                show(row)
                if arguments.out:
                    with open(arguments.out, "w", encoding="utf-8") as file:
                        json.dump(results, file, indent=1)
            is_first = False
        release(arguments.comm, device.type == "cuda")
    if talks:
        print(SHARE)
    dist.destroy_process_group()
    return int(len(wrong) > 0)
