"""Steps of the decoder: one token of each sequence, or all words of a prompt. On GPUs a step is a captured graph."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist


class Step:
    """A call of words that lie in one place. Its scores and the words with the best of them lie in one place, too."""

    def __init__(self, call, words):
        self.call, self.words, self.graph = call, words.clone(), None
        self.scores = self.best = None
        if not words.is_cuda:
            return
        for _ in range(2):
            self._compute()  # makes plans, and whatever else a capture must not make
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        # Threads of PyTorch's NCCL ask for events meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self._compute()

    def _compute(self):
        self.scores = self.call(self.words)
        self.best = self.scores.argmax(-1)

    def run(self):
        """Enqueues the step."""
        if self.graph is None:
            self._compute()
        else:
            self.graph.replay()


class Clock:
    """Times of the slowest process."""

    def __init__(self, device):
        self.on_gpus, self.control = device.type == "cuda", dist.new_group(backend="gloo")
        self.begins = torch.zeros(1, device=device)

    def largest(self, value):
        """The largest value of all processes."""
        of_all = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(of_all, dist.ReduceOp.MAX, group=self.control)
        return float(of_all)

    def us(self, step):
        """Microseconds of a step, which all processes begin together."""
        dist.barrier(self.control)
        if not self.on_gpus:
            begin = time.perf_counter()
            step.run()
            return self.largest((time.perf_counter() - begin) * 1e6)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(400_000)  # until all is enqueued
        if dist.get_world_size() > 1:
            dist.all_reduce(self.begins)  # until all processes are here
        begin.record()
        step.run()
        end.record()
        torch.cuda.synchronize()
        return self.largest(begin.elapsed_time(end) * 1000)
