"""Tandem for PyTorch: operators with gradients, tensor-parallel layers, and a c10d backend.

    all_reduce, all_gather, ...         collectives of a process group; torch.ops.tandem.* are the same operators
    all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce
                                        matrix products that overlap their collective
    all_gather_scaled_matmul, scaled_matmul_reduce_scatter, scaled_matmul_all_reduce
                                        such products in fp8 with scales
    all_gather_quantised, ...           collectives with codes of 8 bits between PEs
    norm_all_gather_matmul              a norm, the gather of its rows, and products
    all_reduce_norm                     an all-reduce with residual, norm and quantisation
    fuse_all_reduce_norm, fuse_norm_all_gather_matmul
                                        find them in a traced graph
    merge_heads, exchange_heads         exchanges around attention
    route, dispatch, combine            layers with experts
    route_and_dispatch                  the first two in one call
    dispatch_gemm, gemm_combine         their products, which overlap the travel of rows
    interleave_gates, separate_gates    the layout of gates and ups that such a product takes, and back
    ColumnParallelLinear, RowParallelLinear
                                        tensor-parallel layers, with and without sequence parallelism
    ParallelExperts                     a layer of experts that the processes share
    enable_async_tp                     PyTorch's own pass for async tensor parallelism ends in these products
    enable_transformers_tp              so do row-parallel layers of models of transformers
    register_backend                    dist.init_process_group("cpu:tandem,cuda:tandem")

`group` is a process group, its name, or None for the default group. A group's first operator makes its world, on all
processes at once.
"""

from __future__ import annotations

from ..errors import MissingPackage

try:
    import torch  # noqa: F401
except ImportError as error:
    raise MissingPackage("torch is not installed, and tandem.torch needs it: pip install torch") from error

from ._version import check_torch

check_torch()

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
from ._expert_gemms import dispatch_gemm, gemm_combine
from ._experts import Routing, combine, dispatch, route
from ._fuse import fuse_all_reduce_norm
from ._fuse_gather import fuse_norm_all_gather_matmul
from ._gates import interleave_gates, separate_gates
from ._groups import shutdown, world_of
from ._heads import exchange_heads, merge_heads
from ._linear import ColumnParallelLinear, RowParallelLinear
from ._matmul import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter, replicated_matmul
from ._moe import ParallelExperts
from ._norm import all_reduce_norm
from ._norm_matmul import norm_all_gather_matmul
from ._passes import inductor_pass
from ._quantised import all_gather_quantised, all_reduce_quantised, reduce_scatter_quantised
from ._route_and_dispatch import route_and_dispatch
from ._scaled import all_gather_scaled_matmul, scaled_matmul_all_reduce, scaled_matmul_reduce_scatter
from ._transformers import enable_transformers_tp

__all__ = [
    "ColumnParallelLinear",
    "ParallelExperts",
    "Routing",
    "RowParallelLinear",
    "all_gather",
    "all_gather_matmul",
    "all_gather_quantised",
    "all_gather_scaled_matmul",
    "all_reduce",
    "all_reduce_norm",
    "all_reduce_quantised",
    "all_to_all",
    "broadcast",
    "combine",
    "dispatch",
    "dispatch_gemm",
    "enable_async_tp",
    "enable_transformers_tp",
    "exchange_heads",
    "fuse_all_reduce_norm",
    "fuse_norm_all_gather_matmul",
    "gather",
    "gemm_combine",
    "inductor_pass",
    "interleave_gates",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "merge_heads",
    "norm_all_gather_matmul",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_quantised",
    "register_backend",
    "replicated_matmul",
    "route",
    "route_and_dispatch",
    "scaled_matmul_all_reduce",
    "scaled_matmul_reduce_scatter",
    "scatter",
    "separate_gates",
    "shutdown",
    "world_of",
]
