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
tt.all_reduce(x)
dist.all_reduce(x)
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        if sys.argv[1] == "gloo":
            tt.all_reduce(x)
        else:
            dist.all_reduce(x)
except tandem.Failure as error:
    print(error)
