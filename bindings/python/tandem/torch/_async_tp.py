"""Tandem behind torch.ops.symm_mem.fused_*: the operators that PyTorch's own pass for async tensor parallelism calls.

torch.compile with torch._inductor.config._micro_pipeline_tp turns an all-gather before a product, and a reduce-scatter
behind one, into these operators. A call that Tandem has no operator for runs the former implementation: one that
gathers or scatters the last axis, and one that averages.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed._symmetric_memory as symm_mem

from .. import errors
from . import _groups, _matmul

_former: dict[tuple[str, str], Any] = {
    ("fused_all_gather_matmul", "CUDA"): symm_mem._fused_all_gather_matmul,
    ("fused_matmul_reduce_scatter", "CUDA"): symm_mem._fused_matmul_reduce_scatter,
    # PyTorch itself has them for GPUs alone. These forms are its own for tensors without values.
    ("fused_all_gather_matmul", "CPU"): symm_mem._fused_all_gather_matmul_fallback,
    ("fused_matmul_reduce_scatter", "CPU"): symm_mem._fused_matmul_reduce_scatter_fallback,
}
_library: torch.library.Library | None = None


def _takes(x: torch.Tensor, weights: list[torch.Tensor], axis: int) -> bool:
    """Whether an operator of Tandem does this along `axis` of x. All processes give the same answer."""
    alike = all(w.dim() == 2 and w.dtype == x.dtype and w.shape[0] == x.shape[-1] for w in weights)
    return 0 <= axis < x.dim() - 1 and alike and _matmul.is_fused(x, weights)


def _all_gather_matmul(key: str) -> Any:
    former = _former["fused_all_gather_matmul", key]

    def run(
        A_shard: torch.Tensor, Bs: list[torch.Tensor], gather_dim: int, group_name: Any, *, return_A: bool = True
    ) -> tuple[torch.Tensor | None, list[torch.Tensor]]:
        if not _takes(A_shard, Bs, gather_dim):
            return former(A_shard, Bs, gather_dim, group_name, return_A=return_A)
        group = _groups.resolve(group_name)
        x = A_shard.movedim(gather_dim, 0)
        results = torch.ops.tandem.all_gather_matmul(x, Bs, [], "none", return_A, group)
        results = [one.movedim(0, gather_dim) for one in results]
        return results.pop() if return_A else None, results

    return run


def _matmul_reduce_scatter(key: str) -> Any:
    former = _former["fused_matmul_reduce_scatter", key]

    def run(A: torch.Tensor, B: torch.Tensor, reduce_op: str, scatter_dim: int, group_name: Any) -> torch.Tensor:
        group = _groups.resolve(group_name)
        if reduce_op != "sum" or not _takes(A, [B], scatter_dim) or A.shape[scatter_dim] % _groups.size_of(group) != 0:
            return former(A, B, reduce_op, scatter_dim, group_name)
        result = torch.ops.tandem.matmul_reduce_scatter(A.movedim(scatter_dim, 0), B, None, "none", group)
        return result.movedim(0, scatter_dim).contiguous()

    return run


def enable_async_tp() -> None:
    """Lets torch.ops.symm_mem.fused_all_gather_matmul and fused_matmul_reduce_scatter run on Tandem.

    It lasts until the process ends, for tensors on CPUs and GPUs. Products of fp8 with scales keep PyTorch's form.
    """
    global _library
    if _library is not None:
        return
    made = torch.library.Library("symm_mem", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older versions warn of each override
            for key in ("CPU", "CUDA"):
                overrides = {} if key == "CPU" else {"allow_override": True}
                made.impl("fused_all_gather_matmul", _all_gather_matmul(key), key, **overrides)
                made.impl("fused_matmul_reduce_scatter", _matmul_reduce_scatter(key), key, **overrides)
    except RuntimeError as error:
        made._destroy()
        text = str(error).splitlines()[0]
        raise errors.Unsupported(f"torch {torch.__version__} has other symm_mem operators: {text}") from error
    _library = made
