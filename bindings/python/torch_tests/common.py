"""The beginning of every program: its process group, its device, and comparisons."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

DEVICE = os.environ.get("TANDEM_TEST_DEVICE", "cpu")
"""Where a program makes its tensors: `cpu`, or `cuda` (python_gpu_check.py)."""


def join(backend: str = "gloo") -> tuple[int, int]:
    """Joins the default process group, unless a program before this one has. Returns rank and size."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if dist.is_initialized():
        return rank, size
    torch.set_num_threads(1)
    if DEVICE == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
        torch.set_default_device("cuda")
        backend = "cpu:gloo,cuda:nccl" if backend == "gloo" else "cpu:tandem,cuda:tandem"
    dist.init_process_group(
        backend, init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=size, timeout=timedelta(seconds=600)
    )
    return rank, size


TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def check_close(what: object, got: torch.Tensor, wanted: torch.Tensor) -> None:
    """Raises where `got` differs from a float64 reference by more than its type explains."""
    assert got.shape == wanted.shape, (what, got.shape, wanted.shape)
    if wanted.numel() == 0:
        return
    error = (got.double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30)
    assert error <= TOLERANCE[got.dtype], (what, got.dtype, float(error))


def gathered(x: torch.Tensor, group: object = None) -> list[torch.Tensor]:
    """The tensors of all processes, by torch.distributed's messages between CPUs."""
    own = x.detach().contiguous().cpu()
    made = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(made, own, group=group)
    return [one.to(x.device) for one in made]


def random(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The same values on all processes with this seed."""
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64).to(dtype)
