#!/usr/bin/env python3
"""Runs PyTorch programs with one process for each rank, and notes what they compute.

Start it twice, with NCCL and with Tandem, and compare:

  python3 bench/nccl/training_check.py --out nccl.json
  tandem launch -n 1 --nccl python3 bench/nccl/training_check.py --out tandem.json --expected nccl.json

One part calls torch.distributed, with results worked out here. Others compare losses of DDP and FSDP training, and tokens of
a small Llama with tp_plan="auto" and random weights, with those of one process. With --expected these have to be the same as in that
run. `--device cpu` uses Gloo.

There is a rank for each GPU; with TANDEM_SHARE_GPU=1 Tandem takes more --ranks. One rank has no peers, so messages between
ranks are then left out, by name. A rank that fails or is late ends the others; all is over after --seconds.
"""
import argparse
import faulthandler
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

BEGIN = time.monotonic()  # before the imports, which --seconds includes

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # the parent of the ranks must not start CUDA
for variable in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
    os.environ.pop(variable, None)  # a launcher's own

import ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from training_parts import PARTS, Checks, save_model  # noqa: E402


def run_part(c, name):
    """Runs a part. Returns whether it ended by an exception, which counts as a failure."""
    c.say(f"{name} begins")
    try:
        PARTS[name](c)
    except Exception as error:  # pylint: disable=broad-except
        c.check(f"{name}: {type(error).__name__}: {error}", False)
        return True
    return False


def run_rank(options, folder, rank):
    """The life of one rank; writes what it found to a file of its own."""
    ranks.begin_rank(options.until - time.monotonic())
    local = rank % torch.cuda.device_count() if options.device == "cuda" else rank
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(local), WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1",
                      LOCAL_WORLD_SIZE=str(options.ranks), MASTER_PORT=str(options.port))
    device = torch.device(options.device, local) if options.device == "cuda" else torch.device("cpu")
    c = Checks(device, ranks.Place(folder, rank, options.ranks), options.stacks_after)
    c.folder = os.path.join(folder, "model")
    c.say("the process group begins")
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=options.ranks)
    for name in options.parts.split(","):
        failed = run_part(c, name)
        if rank == 0:
            print(f"{name}: {c.passed} right, {len(c.failed)} wrong, after {time.perf_counter() - c.begin:.2f} s", flush=True)
        c.place.keep({"passed": c.passed, "failed": c.failed, **c.noted})
        c.place.meet(name, failed)
    c.say("the process group ends")
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


def answered_by():
    """Who answers calls of NCCL: a mapped library that the loader finds by this name, and its version."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    return sorted({line.split()[-1] for line in maps.splitlines() if "nccl" in line.rsplit("/", 1)[-1]})


def parsed():
    """The options, after their checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="file for what was computed")
    parser.add_argument("--expected", help="such a file, with the values that must be the same")
    parser.add_argument("--ranks", type=int, help="processes (default: a process for each GPU, on CPUs 2)")
    parser.add_argument("--port", type=int, default=29677, help="port of the process group that transformers makes")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run, with commas between them")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="where tensors are")
    parser.add_argument("--seconds", type=float, default=55, help="the most seconds of all, imports included")
    parser.add_argument("--after", help="a file; when it exists, the ranks start, and imports are done before")
    parser.add_argument("--stacks-after", type=float, default=0, metavar="SECONDS",
                        help="print each check with its time, and all stacks of a rank after so long without one")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)  # this process is one of the ranks
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    gpus = torch.cuda.device_count() if options.device == "cuda" and options.rank is None else None
    if gpus == 0:
        parser.error("--device: cuda given, allowed without a GPU is cpu")
    options.ranks = (gpus or 2) if options.ranks is None else options.ranks
    shares = os.environ.get("TANDEM_SHARE_GPU") == "1"
    if options.ranks < 1 or options.ranks > (gpus or options.ranks) and not shares:
        parser.error(f"--ranks: {options.ranks} given, allowed is 1 to the number of GPUs, {gpus or 'any on CPUs'}")
    for part in options.parts.split(","):
        if part not in PARTS:
            parser.error(f"--parts: {part} given, allowed are {', '.join(PARTS)}")
    if options.seconds < 1:
        parser.error(f"--seconds: {options.seconds:g} given, allowed is 1 or more")
    options.until = options.until or BEGIN + options.seconds
    return options


def compared(found, path, parts):
    """The differences from the values of an earlier run, in the parts of this one."""
    expected, differs = json.loads(pathlib.Path(path).read_text(encoding="utf-8")), []
    if len(expected) != len(found):
        return [f"{len(found)} ranks have values, and {len(expected)} had before"]
    for part, name in (("ddp", "ddp"), ("fsdp", "fsdp"), ("generate", "tokens")):
        if part not in parts:
            continue
        same = [one.get(name) for one in found] == [one.get(name) for one in expected]
        print(f"{name}: {'the same as' if same else 'other values than'} expected", flush=True)
        differs += [] if same else [f"{name} differs"]
    return differs


def started(options, folder):
    """Imports once what all ranks need, and starts them. Returns what was wrong with them."""
    import torch._dynamo  # noqa: F401
    import torch.distributed.fsdp  # noqa: F401
    if "generate" in options.parts.split(","):
        import transformers.models.llama.modeling_llama  # noqa: F401
        save_model(os.path.join(folder, "model"))
    print("imported; mapped:", *answered_by(), flush=True)
    while options.after and not os.path.exists(options.after):
        if time.monotonic() > options.until:
            return [f"{options.after} did not appear in time"]
        time.sleep(0.02)

    def life(rank):
        if torch.cuda._is_in_bad_fork():  # an import has started CUDA; pylint: disable=protected-access
            print(f"rank {rank} starts anew, since an import has started CUDA", flush=True)
            anew = ["--rank", str(rank), "--ranks", str(options.ranks), "--folder", folder, "--until", str(options.until)]
            os.execv(sys.executable, [sys.executable, *sys.argv, *anew])
        run_rank(options, folder, rank)

    return ranks.watch(ranks.start(options.ranks, life), options.until, folder)


def main():
    options = parsed()
    if options.rank is not None:
        run_rank(options, options.folder, options.rank)
        return 0
    ranks.end_in_time(options.until - time.monotonic())
    folder = tempfile.mkdtemp(prefix="training_check_")
    wrong = started(options, folder)
    found = ranks.kept(folder)
    shutil.rmtree(folder)
    pathlib.Path(options.out).write_text(json.dumps(found, indent=1), encoding="utf-8")
    wrong += [failure for rank in found for failure in rank["failed"]]
    wrong += [] if len(found) == options.ranks else [f"{options.ranks - len(found)} ranks ended no part"]
    wrong += compared(found, options.expected, options.parts.split(",")) if options.expected else []
    print(f"{options.ranks} rank{'s' * (options.ranks > 1)}, {sum(rank['passed'] for rank in found)} right; wrong: {wrong or 'nothing'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
