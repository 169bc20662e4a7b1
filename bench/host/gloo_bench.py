#!/usr/bin/env python3
"""Compares Tandem's collectives on CPUs with Gloo, PyTorch's process group for CPUs, in the same processes.

usage: bench/host/gloo_bench.py [--build build/release] [--processes 2,4] [--most 64M] [--out FILE.json]
                               [--operations broadcast,...] [--python PYTHON]

Without --python, the first run makes an environment with PyTorch in build/gloo-venv, which needs a package index. Both
libraries take turns, call by call. A time is the median over the rounds of the slowest process, in microseconds. Every
result is compared with the exact one. Tandem runs on buffers of its symmetric heap, and on plain memory. Broadcasts are
in place, as Gloo's are; Gloo's all-reduce is in place too, Tandem's has two buffers. Each process writes its input
before each call. "copy us" is a bound for one thread: the time in which each process copies the bytes that it needs
from the others' memory, without any signal.
"""
import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / "build/gloo-venv"
F32, SUM = 1, 0  # tandem_dtype, tandem_op
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"]


def parse_size(text):
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


class Tandem:
    """The part of the C API that this program uses. Errors are exceptions."""

    def __init__(self, build):
        self.library = ctypes.CDLL(str(build / "lib/libtandem_c.so"))
        self.library.tandem_last_error.restype = ctypes.c_char_p
        self.library.tandem_version.restype = ctypes.c_char_p
        self.world = ctypes.c_void_p()
        self.check(self.library.tandem_world_from_environment(ctypes.byref(self.world), None))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.tandem_last_error().decode())

    def allocate(self, size):
        pointer = ctypes.c_void_p()
        self.check(self.library.tandem_alloc(self.world, ctypes.c_size_t(size), ctypes.byref(pointer)))
        return pointer.value

    def peer_pointer(self, pointer, pe):
        peer = ctypes.c_void_p()
        self.check(self.library.tandem_peer_pointer(self.world, ctypes.c_void_p(pointer), pe, ctypes.byref(peer)))
        return peer.value

    def run(self, operation, source, target, count):
        a, b, n = ctypes.c_void_p(source), ctypes.c_void_p(target), ctypes.c_size_t(count)
        library, world = self.library, self.world
        status = {
            "all_reduce": lambda: library.tandem_all_reduce(world, a, b, n, F32, SUM, None),
            "all_gather": lambda: library.tandem_all_gather(world, a, b, n, F32, None),
            "reduce_scatter": lambda: library.tandem_reduce_scatter(world, a, b, n, F32, SUM, None),
            "broadcast": lambda: library.tandem_broadcast(world, a, b, n, F32, 0, None),
        }[operation]()
        self.check(status)
        self.check(library.tandem_synchronize(world, None))

    def close(self):
        self.check(self.library.tandem_world_destroy(self.world))


def measure(arguments):
    """One process: runs both libraries and writes the rows of the slowest process on PE 0."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pe, pes = dist.get_rank(), dist.get_world_size()
    tandem = Tandem(arguments.build)
    most = parse_size(arguments.most)
    heap = [tandem.allocate(most), tandem.allocate(most)]
    peers = [tandem.peer_pointer(heap[0], p) for p in range(pes)]

    def on_heap(place, count):
        return torch.frombuffer((ctypes.c_float * count).from_address(heap[place]), dtype=torch.float32)

    rows = []
    for operation in arguments.operations.split(","):
        size = 1 << 10
        while size <= most:
            total = size // 4 // pes * pes  # elements of the larger buffer
            part = total // pes
            ins = {"all_gather": part}.get(operation, total)
            outs = {"reduce_scatter": part}.get(operation, total)
            fresh = torch.arange(ins, dtype=torch.float32) % 64 + pe
            data = fresh.clone()
            both = [torch.arange(ins, dtype=torch.float32) % 64 + p for p in range(pes)]
            expected = {
                "all_reduce": lambda: sum(both),
                "all_gather": lambda: torch.cat(both),
                "reduce_scatter": lambda: sum(both)[pe * part : (pe + 1) * part],
                "broadcast": lambda: both[0],
            }[operation]()
            gloo_out = torch.empty(outs)
            plain_out = torch.empty(outs)
            a, b = on_heap(0, ins), on_heap(1, outs)
            count = part if operation in ("all_gather", "reduce_scatter") else total

            def gloo():
                if operation == "all_gather":
                    dist.all_gather_into_tensor(gloo_out, data)
                elif operation == "reduce_scatter":
                    dist.reduce_scatter_tensor(gloo_out, data)
                else:
                    gloo_out.copy_(data)  # Gloo's all-reduce and broadcast work in place
                    started[0] = time.perf_counter()
                    dist.all_reduce(gloo_out) if operation == "all_reduce" else dist.broadcast(gloo_out, 0)

            def ours(source, target):
                if operation == "broadcast":
                    target.copy_(source)
                    source = target
                    started[0] = time.perf_counter()
                tandem.run(operation, source.data_ptr(), target.data_ptr(), count)

            def copy():
                if operation == "broadcast":
                    if pe != 0:
                        ctypes.memmove(heap[1], peers[0], 4 * total)
                    return
                for step in range(2 if operation == "all_reduce" else 1):
                    for peer in peers[:pe] + peers[pe + 1 :]:
                        ctypes.memmove(heap[1], peer + 4 * part * step, 4 * part)

            candidates = {
                "gloo": (gloo, gloo_out),
                "tandem": (lambda: ours(a, b), b),
                "tandem_plain": (lambda: ours(data, plain_out), plain_out),
                "copy": (copy, None),
            }
            started = [0.0]
            times = {name: [] for name in candidates}
            rounds = max(15, min(200, (64 << 20) // size))
            wrong = 0
            for turn in range(rounds + 3):
                for name, (call, out) in candidates.items():
                    if turn == 0 and out is not None:
                        out.fill_(-1)
                    data.copy_(fresh)
                    a.copy_(fresh)
                    dist.barrier()
                    started[0] = time.perf_counter()
                    call()
                    if turn >= 3:
                        times[name].append(1e6 * (time.perf_counter() - started[0]))
                    elif turn == 0 and out is not None:
                        wrong += int((out != expected).sum())
            medians = [None] * pes
            dist.all_gather_object(medians, [{name: statistics.median(t) for name, t in times.items()}, wrong])
            row = {name: max(m[0][name] for m in medians) for name in candidates}
            rows.append({"op": operation, "bytes": total * 4, "pes": pes, "rounds": rounds,
                         "wrong": sum(m[1] for m in medians), **{f"{n}_us": round(t, 1) for n, t in row.items()}})
            if pe == 0:
                r = rows[-1]
                print(f"{operation:>15} {total * 4:>10} {r['gloo_us']:>10.1f} {r['tandem_us']:>10.1f} "
                      f"{r['tandem_plain_us']:>12.1f} {r['copy_us']:>10.1f} {r['gloo_us'] / r['tandem_us']:>7.2f} "
                      f"{r['wrong']:>6}", flush=True)
            size *= 4
        if pe == 0 and arguments.part:  # after each operation, so that a run that is cut off leaves its rows
            about = {"torch": torch.__version__, "python": platform.python_version(),
                     "tandem": tandem.library.tandem_version().decode(), "rows": rows}
            Path(arguments.part).write_text(json.dumps(about))
    tandem.close()
    dist.destroy_process_group()


def processor():
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return names[0] if names else platform.machine()


def to_text(result):
    """Returns the result as JSON with a row a line."""
    head = json.dumps({name: value for name, value in result.items() if name != "rows"}, indent=1).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(row) for row in result["rows"])
    return f'{head},\n "rows": [\n  {rows}\n ]\n}}\n'


def make_environment():
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if subprocess.run([VENV / "bin/python", "-c", "import torch, numpy"], stderr=subprocess.DEVNULL).returncode:
        if subprocess.run([VENV / "bin/pip", "install", "-q", "torch", "numpy"]).returncode:
            print("gloo_bench: PyTorch could not be installed from the package index", file=sys.stderr)
            sys.exit(77)
    return str(VENV / "bin/python")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="build folder (default: build/release)")
    parser.add_argument("--processes", default="2,4", help="numbers of processes (default: 2,4)")
    parser.add_argument("--most", default="64M", help="largest size in bytes (default: 64M)")
    parser.add_argument("--operations", default=",".join(OPERATIONS), help="collectives (default: all four)")
    parser.add_argument("--out", help="file for the rows as JSON")
    parser.add_argument("--python", help="Python with torch and numpy (default: build/gloo-venv, made if it is missing)")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        return measure(arguments)
    python = arguments.python or make_environment()
    result = {"command": "bench/host/gloo_bench.py " + " ".join(sys.argv[1:]), "date": time.strftime("%Y-%m-%d"),
              "machine": f"{processor()}, {len(os.sched_getaffinity(0))} cores", "rows": []}
    print(f"# {'operation':>13} {'bytes':>10} {'gloo us':>10} {'tandem us':>10} {'on plain us':>12} {'copy us':>10} {'ratio':>7} {'wrong':>6}")
    for processes in arguments.processes.split(","):
        print(f"# {processes} processes")
        part = arguments.build / f"gloo_bench_{processes}.json"
        subprocess.run([arguments.build / "bin/tandem", "launch", "-n", processes, python, __file__, "--build",
                        arguments.build, "--most", arguments.most, "--operations", arguments.operations, "--part", part],
                       check=True, env={**os.environ, "TANDEM_DEVICE": "host", "OMP_NUM_THREADS": "1"})
        about = json.loads(part.read_text())
        result["rows"] += about.pop("rows")
        result.update(about)
    if arguments.out:
        Path(arguments.out).write_text(to_text(result))
    return 1 if any(row["wrong"] for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
