#!/usr/bin/env python3
"""Compares Tandem's collectives on CPUs with Gloo, PyTorch's process group for CPUs, in the same processes.

usage: bench/host/gloo_bench.py [--build build/release] [--processes 2,4] [--least 1K] [--most 64M] [--out FILE.json]
                               [--operations broadcast,...] [--python PYTHON]

Without --python, the first run makes an environment with PyTorch in build/gloo-venv, which needs a package index. Both
libraries take turns, call by call, and the order of turns changes from round to round. Each process writes its input
before each call. The processes then begin the call together, within some microseconds. They poll words in shared
memory, since processes leave a barrier of Gloo 50 to 300 us apart. A time is the median over the rounds of the slowest
process, in microseconds. A quiet time is for machines with other work, where a process may lose its core at any point.
It is the tenth percentile over the rounds of the time from the last begin to the last end. Every result is compared with the
exact one. Tandem runs on buffers of its symmetric heap, and on plain memory. Broadcasts are in place, as Gloo's are.
Gloo's all-reduce is in place too, and Tandem's has two buffers.
"copy us" is a bound for one thread. It is the time in which each process copies the bytes that it needs from the others'
memory, without any signal.
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
WARM_UP = 3  # rounds that are not measured
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


class Start:
    """Lets the processes begin a call at the same time, without a library: each polls a word of every other one."""

    def __init__(self, tandem, pe, pes):
        word = tandem.allocate(64)
        self.words = [ctypes.c_uint64.from_address(tandem.peer_pointer(word, p)) for p in range(pes)]
        self.own = self.words[pe]
        self.turn = 0

    def __call__(self):
        self.turn += 1
        self.own.value = self.turn
        for word in self.words:
            while word.value < self.turn:
                os.sched_yield()


class Row:
    """One collective of one size: the buffers, the right result, and each candidate's call."""

    def __init__(self, operation, size, pe, pes, tandem, heap, peers):
        import torch

        self.operation, self.pe, self.pes, self.tandem, self.heap, self.peers = operation, pe, pes, tandem, heap, peers
        self.total = total = size // 4 // pes * pes  # elements of the larger buffer
        self.part = part = total // pes
        ins = {"all_gather": part}.get(operation, total)
        outs = {"reduce_scatter": part}.get(operation, total)
        self.count = part if operation in ("all_gather", "reduce_scatter") else total
        self.is_in_place = operation == "broadcast"
        self.fresh = torch.arange(ins, dtype=torch.float32) % 64 + pe
        both = [torch.arange(ins, dtype=torch.float32) % 64 + p for p in range(pes)]
        self.expected = {
            "all_reduce": lambda: sum(both),
            "all_gather": lambda: torch.cat(both),
            "reduce_scatter": lambda: sum(both)[pe * part : (pe + 1) * part],
            "broadcast": lambda: both[0],
        }[operation]()

        def on_heap(place, count):
            return torch.frombuffer((ctypes.c_float * count).from_address(heap[place]), dtype=torch.float32)

        plain = self.fresh.clone()
        self.inputs = {"gloo": plain, "tandem": on_heap(0, ins), "tandem_plain": plain, "copy": on_heap(0, ins)}
        self.outputs = {"gloo": torch.empty(outs), "tandem": on_heap(1, outs), "tandem_plain": torch.empty(outs)}
        self.calls = {"gloo": self.gloo, "tandem": lambda: self.ours("tandem"),
                      "tandem_plain": lambda: self.ours("tandem_plain"), "copy": self.copy}

    def prepare(self, name):
        """Writes the input of the next call, which for a call in place is the output."""
        self.inputs[name].copy_(self.fresh)
        if name != "copy" and (self.is_in_place or (name == "gloo" and self.operation == "all_reduce")):
            self.outputs[name].copy_(self.inputs[name])

    def gloo(self):
        import torch.distributed as dist

        data, out = self.inputs["gloo"], self.outputs["gloo"]
        {
            "all_reduce": lambda: dist.all_reduce(out),
            "all_gather": lambda: dist.all_gather_into_tensor(out, data),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, data),
            "broadcast": lambda: dist.broadcast(out, 0),
        }[self.operation]()

    def ours(self, name):
        source = self.outputs[name] if self.is_in_place else self.inputs[name]
        self.tandem.run(self.operation, source.data_ptr(), self.outputs[name].data_ptr(), self.count)

    def copy(self):
        if self.operation == "broadcast":
            if self.pe != 0:
                ctypes.memmove(self.heap[1], self.peers[0], 4 * self.total)
            return
        for step in range(2 if self.operation == "all_reduce" else 1):
            for peer in self.peers[: self.pe] + self.peers[self.pe + 1 :]:
                ctypes.memmove(self.heap[1], peer + 4 * self.part * step, 4 * self.part)


def measure_row(row, start, rounds):
    """Returns each candidate's begins and ends in s on the host's one clock, and how many elements of the first results
    were wrong."""
    names = list(row.calls)
    times = {name: [] for name in names}
    wrong = 0
    for turn in range(rounds + WARM_UP):
        shift = turn % len(names)
        for name in (names[shift:] + names[:shift])[:: -1 if turn // len(names) % 2 else 1]:
            out = row.outputs.get(name)
            if turn == 0 and out is not None:
                out.fill_(-1)
            row.prepare(name)
            start()
            begin = time.perf_counter()
            row.calls[name]()
            end = time.perf_counter()
            if turn >= WARM_UP:
                times[name].append((begin, end))
            elif turn == 0 and out is not None:
                wrong += int((out != row.expected).sum())
    return times, wrong


def median_us(times):
    return 1e6 * statistics.median(end - begin for begin, end in times)


def quiet_us(processes):
    """The tenth percentile over the rounds of the time from the last process's begin to the last one's end."""
    rounds = sorted(max(end for _, end in one) - max(begin for begin, _ in one) for one in zip(*processes))
    return 1e6 * rounds[len(rounds) // 10]


def measure(arguments):
    """One process: runs both libraries and writes the rows of the slowest process on PE 0."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pe, pes = dist.get_rank(), dist.get_world_size()
    tandem = Tandem(arguments.build)
    least, most = parse_size(arguments.least), parse_size(arguments.most)
    heap = [tandem.allocate(most), tandem.allocate(most)]
    peers = [tandem.peer_pointer(heap[0], p) for p in range(pes)]
    start = Start(tandem, pe, pes)
    dist.barrier()
    rows = []
    for operation in arguments.operations.split(","):
        size = least
        while size <= most:
            rounds = max(15, min(200, (64 << 20) // size))
            times, wrong = measure_row(Row(operation, size, pe, pes, tandem, heap, peers), start, rounds)
            everywhere = [None] * pes
            dist.all_gather_object(everywhere, [times, wrong])
            us = {name: max(median_us(all_times[name]) for all_times, _ in everywhere) for name in times}
            quiet = {name: quiet_us([all_times[name] for all_times, _ in everywhere]) for name in times}
            wrong = sum(one for _, one in everywhere)
            rows.append({"op": operation, "bytes": size // 4 // pes * pes * 4, "pes": pes, "rounds": rounds,
                         "wrong": wrong, **{f"{n}_us": round(t, 1) for n, t in us.items()},
                         **{f"{n}_quiet_us": round(t, 1) for n, t in quiet.items()}})
            if pe == 0:
                print(f"{operation:>15} {size:>10} {us['gloo']:>10.1f} {us['tandem']:>10.1f} "
                      f"{us['tandem_plain']:>12.1f} {us['copy']:>10.1f} {us['gloo'] / us['tandem']:>7.2f} "
                      f"{quiet['gloo']:>10.1f} {quiet['tandem']:>10.1f} {quiet['gloo'] / quiet['tandem']:>7.2f} "
                      f"{wrong:>6}", flush=True)
                if arguments.part:  # after each row, so that a run that is cut off leaves its rows
                    about = {"torch": torch.__version__, "python": platform.python_version(),
                             "tandem": tandem.library.tandem_version().decode(), "rows": rows}
                    Path(arguments.part).write_text(json.dumps(about))
            size *= 4
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
    parser.add_argument("--least", default="1K", help="smallest size in bytes (default: 1K)")
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
    print(f"# {'operation':>13} {'bytes':>10} {'gloo us':>10} {'tandem us':>10} {'on plain us':>12} {'copy us':>10} {'ratio':>7} "
          f"{'quiet gloo':>10} {'tandem':>10} {'ratio':>7} {'wrong':>6}")
    for processes in arguments.processes.split(","):
        print(f"# {processes} processes")
        part = arguments.build / f"gloo_bench_{processes}.json"
        options = ["--build", arguments.build, "--least", arguments.least, "--most", arguments.most,
                   "--operations", arguments.operations, "--part", part]
        subprocess.run([arguments.build / "bin/tandem", "launch", "-n", processes, python, __file__, *options],
                       check=True, env={**os.environ, "TANDEM_DEVICE": "host", "OMP_NUM_THREADS": "1"})
        about = json.loads(part.read_text())
        result["rows"] += about.pop("rows")
        result.update(about)
    if arguments.out:
        Path(arguments.out).write_text(to_text(result))
    return 1 if any(row["wrong"] for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
