"""Ends the interpreter with worlds of groups left open, many times: what is printed counts the ends.

Each process imports PyTorch once. Every round it forks a child, which is a member of a new process group and calls
operators. The child ends as a program ends, without any shutdown.
"""

from __future__ import annotations

import os
import sys

import tandem.torch as tt
import torch
import torch.distributed as dist

ROUNDS = int(sys.argv[1])
ENDS = ("left open", "destroyed", "an exception", "sys.exit")


def program(end: str, rendezvous: str) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=size)
    x = torch.ones(16, 16)
    assert tt.all_reduce(x).sum() == 256 * size
    assert tt.all_gather_matmul(x, x).shape == (16 * size, 16)
    if end == "destroyed":
        dist.destroy_process_group()
    if end == "an exception" and rank == 1:
        raise ValueError("enough")
    if end == "sys.exit":
        sys.exit(3)


ended = 0
for number in range(ROUNDS):
    way = ENDS[number % len(ENDS)]
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        program(way, f"{os.environ['RENDEZVOUS']}-{number}")
        break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # An exception may end the calls of the others.
    raised = (1,) if os.environ["RANK"] == "1" else (0, 1)
    assert code in {"an exception": raised, "sys.exit": (3,)}.get(way, (0,)), (number, way, code)
    ended += 1
else:
    print(f"{ended} ends")
