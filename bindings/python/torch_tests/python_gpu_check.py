#!/usr/bin/env python3
"""Runs the operators of tandem.torch on all GPUs of this machine, a process each, beside PyTorch and NCCL.

    TANDEM_LIBRARY=build/cuda/lib/libtandem_c.so python3 bindings/python/torch_tests/python_gpu_check.py [PROGRAM...]

The programs are those that test CPUs, with tensors on GPUs, and program_gpu.py. One GPU makes a world of one process;
`--processes N` makes more of them, which share it. NCCL refuses them, so they need Tandem's:

    TANDEM_LIBRARY=... tandem launch -n 1 --nccl python3 bindings/python/torch_tests/python_gpu_check.py --processes 2

Programs of one process run side by side. `--limit S` ends a program after S seconds, and `--seconds S` all of them: a
program has at most twice its share of what is left. A program that is late prints its stacks. One whose packages are
not installed does not run. Exit code 1: a program failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = (
    "gpu", "values", "products", "norm", "norm_gather", "layers", "experts", "scaled", "deep_ep", "compile", "async_tp",
    "training", "plan_memory", "transformers", "backend",
)  # fmt: skip
AT_ONCE = 5
NEEDS = {"gpu": ("numpy",), "transformers": ("transformers", "accelerate")}
FEWEST_PROCESSES = {"backend": 2}
MOST_TEXT = 4000  # characters of a process that are shown
FEWEST_S = 5.0  # of a program, also if time is short


def end(late: subprocess.Popen[str], started: list[subprocess.Popen[str]]) -> str:
    """Ends all processes, each with its stacks in its output. Returns the output of `late`."""
    for one in started:
        one.send_signal(signal.SIGABRT)
    time.sleep(1)
    for one in started:
        one.kill()
    return late.communicate()[0]


def run(program: str, processes: int, gpus: int, limit_s: float) -> tuple[str, int, str]:
    """Runs a program in `processes` processes. Returns a line about it, 0 if all ended well, and the log."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(HERE.parent)))),
            "RENDEZVOUS": f"file://{folder}/rendezvous",
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
            "TANDEM_TEST_DEVICE": "cuda",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            **({"TANDEM_SHARE_GPU": "1"} if processes > gpus else {}),
        }
        started = [
            subprocess.Popen(
                [sys.executable, str(HERE / f"program_{program}.py"), f"{folder}/model"],  # where one saves its model
                env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank % gpus)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(processes)
        ]
        texts, late = [], False
        for one in started:
            try:
                texts.append(one.communicate(timeout=max(1.0, begin + limit_s - time.monotonic()))[0])
            except subprocess.TimeoutExpired:
                late = True
                texts.append(end(one, started))
    codes = [one.returncode for one in started]
    state = "too late" if late else "passed" if not any(codes) else f"FAILED with {codes}"
    line = f"{program:11} {state}, {time.monotonic() - begin:.0f} s"
    return line, int(any(codes)), "\n".join(text[-MOST_TEXT:] for text in texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=150.0, metavar="S", help="the most seconds of a program")
    parser.add_argument("--processes", type=int, metavar="N", help="processes (default: one for each GPU)")
    parser.add_argument("--seconds", type=float, metavar="S", help="the most seconds of all programs")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    arguments = parser.parse_args()
    import torch  # not before the help text

    gpus = torch.cuda.device_count()
    if gpus == 0:
        print("python_gpu_check: no GPU found")
        return 2
    processes = arguments.processes or gpus
    at_once = AT_ONCE if processes == 1 else 1
    begin, given = time.monotonic(), arguments.programs or list(PROGRAMS)
    programs = []
    for program in given:
        missing = [name for name in NEEDS.get(program, ()) if importlib.util.find_spec(name) is None]
        if missing:
            print(f"{program:11} not run: {' and '.join(missing)} not installed")
        elif processes < FEWEST_PROCESSES.get(program, 1):
            print(f"{program:11} not run: {processes} processes, it needs {FEWEST_PROCESSES[program]}")
        else:
            programs.append(program)

    def limit(number: int) -> float:
        """The most seconds of the program with this number."""
        if arguments.seconds is None:
            return float(arguments.limit)
        left = begin + arguments.seconds - time.monotonic()
        turns = math.ceil((len(programs) - number) / at_once)
        share = min(2 * left / turns, left - FEWEST_S * (turns - 1))
        return float(min(arguments.limit, max(FEWEST_S, share)))

    print(f"{processes} processes, {gpus} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for line, code, log in pool.map(lambda i: run(programs[i], processes, gpus, limit(i)), range(len(programs))):
            print(line, flush=True)
            failed += code
            if code:
                print(log)
    print(f"python_gpu_check: {len(programs)} programs, {failed} failed")
    return int(failed > 0)


sys.exit(main())
