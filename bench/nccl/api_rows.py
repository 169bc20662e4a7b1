#!/usr/bin/env python3
"""Times the collectives of a library with NCCL's C interface, on memory of PyTorch.

`tandem launch` starts one process for each rank. The library is the one that the loader finds as libnccl.so.2
(`--nccl`: Tandem's), or `--library FILE`. Rank 0 prints one JSON line for each row:

  tandem launch -n 2 --nccl python3 bench/nccl/api_rows.py
  tandem launch -n 2 python3 bench/nccl/api_rows.py --library .../nvidia/nccl/lib/libnccl.so.2
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import tempfile
import time

import torch

FLOAT32, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Job:
    """This process's rank of a communicator."""

    def __init__(self, library):
        self.nccl = ctypes.CDLL(library)
        self.nccl.ncclGetLastError.restype = ctypes.c_char_p
        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.on_gpu = torch.cuda.is_available() and os.environ.get("TANDEM_DEVICE") != "host"
        self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", self.rank)) if self.on_gpu else 0)
        if self.on_gpu:
            torch.cuda.set_device(self.device)
        else:
            self.device = torch.device("cpu")
        self.comm = ctypes.c_void_p()
        begin = time.perf_counter()
        self.check(self.nccl.ncclCommInitRank(ctypes.byref(self.comm), self.ranks, self.meet(), self.rank))
        self.start_s = time.perf_counter() - begin

    def check(self, result):
        if result != 0:
            raise RuntimeError(self.nccl.ncclGetLastError(None).decode())

    def meet(self):
        """Rank 0 hands its id over in a file that only this job knows."""
        uid = UniqueId()
        file = pathlib.Path(tempfile.gettempdir()) / f"nccl_rows_{os.environ['TANDEM_RUN_ID']}"
        if self.rank == 0:
            self.check(self.nccl.ncclGetUniqueId(ctypes.byref(uid)))
            part = file.with_suffix(".part")
            part.touch(mode=0o600)
            part.write_bytes(bytes(uid))
            part.rename(file)
        while not file.exists():
            time.sleep(0.01)
        return UniqueId.from_buffer_copy(file.read_bytes())

    def stream(self):
        return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if self.on_gpu else None)

    def synchronize(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def calls(self, count):
        """Returns a function for each collective, on buffers of `count` elements for the larger side."""
        total = torch.ones(count, device=self.device)
        result = torch.zeros(count, device=self.device)
        part = count // self.ranks
        all_of, one = ctypes.c_size_t(count), ctypes.c_size_t(part)
        a, b = ctypes.c_void_p(total.data_ptr()), ctypes.c_void_p(result.data_ptr())
        nccl, comm = self.nccl, self.comm

        def exchange():
            right, left = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
            self.check(nccl.ncclGroupStart())
            self.check(nccl.ncclSend(a, all_of, FLOAT32, right, comm, self.stream()))
            self.check(nccl.ncclRecv(b, all_of, FLOAT32, left, comm, self.stream()))
            return nccl.ncclGroupEnd()

        calls = {
            "all_reduce": lambda: nccl.ncclAllReduce(a, b, all_of, FLOAT32, SUM, comm, self.stream()),
            "all_gather": lambda: nccl.ncclAllGather(a, b, one, FLOAT32, comm, self.stream()),
            "reduce_scatter": lambda: nccl.ncclReduceScatter(a, b, one, FLOAT32, SUM, comm, self.stream()),
            "all_to_all": lambda: nccl.ncclAlltoAll(a, b, one, FLOAT32, comm, self.stream()),
            "broadcast": lambda: nccl.ncclBroadcast(a, b, all_of, FLOAT32, 0, comm, self.stream()),
            "send_recv": exchange,
        }
        return calls, (total, result)

    def time_us(self, call, repeats, graph):
        """Returns the median time of a call."""
        run = lambda: self.check(call())
        run()
        self.synchronize()
        if graph:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                run()
            run = captured.replay
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(repeats):
                run()
            self.synchronize()
            times.append((time.perf_counter() - begin) / repeats * 1e6)
        return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="libnccl.so.2", help="file with NCCL's interface")
    parser.add_argument("--least", type=int, default=1 << 10, help="bytes of the smallest row")
    parser.add_argument("--most", type=int, default=1 << 30, help="bytes of the largest row")
    parser.add_argument("--graph", action="store_true", help="replay each call from a CUDA graph")
    options = parser.parse_args()
    job = Job(options.library)
    version = ctypes.c_int()
    job.check(job.nccl.ncclGetVersion(ctypes.byref(version)))
    is_tandem = hasattr(job.nccl, "tandem_nccl_identity")
    say = print if job.rank == 0 else lambda *_, **__: None
    free = torch.cuda.mem_get_info()[0] if job.on_gpu else 0
    say(json.dumps({"library": "Tandem" if is_tandem else "NCCL", "version": version.value, "ranks": job.ranks,
                    "start_s": round(job.start_s, 4), "free_bytes": free}), flush=True)
    size = options.least
    while size <= options.most:
        calls, kept = job.calls(size // 4)
        for name, call in calls.items():
            repeats = max(2, min(50, (64 << 20) // size))
            us = job.time_us(call, repeats, options.graph)
            say(json.dumps({"op": name, "bytes": size, "graph": options.graph, "us": round(us, 2)}), flush=True)
        del kept
        size *= 4
    job.check(job.nccl.ncclCommDestroy(job.comm))


if __name__ == "__main__":
    main()
