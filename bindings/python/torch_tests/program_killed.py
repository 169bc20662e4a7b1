"""Process 1 dies. All others print the error of their next call."""

from __future__ import annotations

import os
import signal
import sys

import tandem
import tandem.torch as tt
import torch
import torch.distributed as dist
from common import join

rank, size = join(sys.argv[1])
x = torch.ones(1000)
rows, ids = torch.ones(4, 16, dtype=torch.bfloat16), torch.arange(8).view(4, 2) % (2 * size)
layer = tt.ParallelExperts(16, 8, 2 * size)


def calls():
    layer(rows, ids, torch.ones(4, 2))
    tt.exchange_heads(x.view(2, -1, 1)[:, :size])
    tt.all_reduce(x)


if sys.argv[1] == "gloo":
    calls()
dist.all_reduce(x)
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        if sys.argv[1] == "gloo":
            calls()
        else:
            dist.all_reduce(x)
except tandem.Failure as error:
    print(error)
