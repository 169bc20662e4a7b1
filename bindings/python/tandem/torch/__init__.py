"""Tandem for PyTorch: operators with gradients, tensor-parallel layers, and a c10d backend.

    all_reduce, all_gather, ...         collectives of a process group; torch.ops.tandem.* are the same operators
    all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce
                                        matrix products that overlap their collective
    all_reduce_norm                     an all-reduce with residual, norm and quantisation
    fuse_all_reduce_norm                finds them in a traced graph
    ColumnParallelLinear, RowParallelLinear
                                        tensor-parallel layers, with and without sequence parallelism
    enable_async_tp                     PyTorch's own pass for async tensor parallelism ends in these products
    register_backend                    dist.init_process_group("cpu:tandem")

`group` is a process group, its name, or None for the default group. A group's first operator makes its world, on all
processes at once.
"""

from __future__ import annotations

from ..errors import MissingPackage

try:
    import torch  # noqa: F401
except ImportError as error:
    raise MissingPackage("torch is not installed, and tandem.torch needs it: pip install torch") from error

from ._async_tp import enable_async_tp
from ._backend import register_backend
from ._collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)
from ._fuse import fuse_all_reduce_norm, inductor_pass
from ._groups import shutdown, world_of
from ._linear import ColumnParallelLinear, RowParallelLinear
from ._matmul import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter, replicated_matmul
from ._norm import all_reduce_norm

__all__ = [
    "ColumnParallelLinear",
    "RowParallelLinear",
    "all_gather",
    "all_gather_matmul",
    "all_reduce",
    "all_reduce_norm",
    "all_to_all",
    "broadcast",
    "enable_async_tp",
    "fuse_all_reduce_norm",
    "gather",
    "inductor_pass",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "reduce",
    "reduce_scatter",
    "register_backend",
    "replicated_matmul",
    "scatter",
    "shutdown",
    "world_of",
]
