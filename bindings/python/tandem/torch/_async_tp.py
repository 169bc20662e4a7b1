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
from . import _groups, _matmul, _scaled

_former: dict[tuple[str, str], Any] = {
    ("fused_all_gather_matmul", "CUDA"): symm_mem._fused_all_gather_matmul,
    ("fused_matmul_reduce_scatter", "CUDA"): symm_mem._fused_matmul_reduce_scatter,
    # PyTorch itself has them for GPUs alone. These forms are its own for tensors without values.
    ("fused_all_gather_scaled_matmul", "CUDA"): symm_mem._fused_all_gather_scaled_matmul,
    ("fused_scaled_matmul_reduce_scatter", "CUDA"): symm_mem._fused_scaled_matmul_reduce_scatter,
    ("fused_all_gather_matmul", "CPU"): symm_mem._fused_all_gather_matmul_fallback,
    ("fused_matmul_reduce_scatter", "CPU"): symm_mem._fused_matmul_reduce_scatter_fallback,
    ("fused_all_gather_scaled_matmul", "CPU"): symm_mem._fused_all_gather_scaled_matmul_fallback,
    ("fused_scaled_matmul_reduce_scatter", "CPU"): symm_mem._fused_scaled_matmul_reduce_scatter_fallback,
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


def _takes_scaled(
    x: torch.Tensor,
    weights: list[torch.Tensor],
    x_scale: torch.Tensor,
    scales: list[torch.Tensor],
    biases: list[torch.Tensor | None],
    result_scales: list[torch.Tensor | None],
    dtypes: list[torch.dtype | None],
    axis: int,
) -> bool:
    """Whether an operator of Tandem for fp8 does this along `axis` of x. All processes give the same answer."""
    fp8 = torch.float8_e4m3fn
    return (
        0 <= axis < x.dim() - 1
        and x.dtype == fp8
        and all(w.dim() == 2 and w.dtype == fp8 and w.shape[0] == x.shape[-1] for w in weights)
        and _scaled.is_fused(x, weights)
        and (x_scale.numel() == 1 or tuple(x_scale.shape) == (*x.shape[:-1], 1))
        and all(s.numel() in (1, w.shape[1]) for s, w in zip(scales, weights, strict=True))
        and len({s.numel() > 1 for s in scales}) == 1
        and all(s.dtype == torch.float32 for s in (x_scale, *scales))
        and len({b is None for b in biases}) == 1
        and all(b is None or b.dtype == torch.bfloat16 for b in biases)
        and all(one is None for one in result_scales)
        and set(dtypes) in ({torch.bfloat16}, {torch.float16})
    )


def _scale_of_rows(x_scale: torch.Tensor, axis: int) -> torch.Tensor:
    return x_scale.reshape(()) if x_scale.numel() == 1 else x_scale.movedim(axis, 0)


def _all_gather_scaled_matmul(key: str) -> Any:
    former = _former["fused_all_gather_scaled_matmul", key]

    def run(
        A: torch.Tensor,
        Bs: list[torch.Tensor],
        A_scale: torch.Tensor,
        B_scales: list[torch.Tensor],
        gather_dim: int,
        group_name: Any,
        biases: list[torch.Tensor | None],
        result_scales: list[torch.Tensor | None],
        out_dtypes: list[torch.dtype | None],
        use_fast_accum: list[bool],
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        kinds = symm_mem._maybe_convert_scalar_types_to_dtypes(out_dtypes)
        if not _takes_scaled(A, Bs, A_scale, B_scales, biases, result_scales, kinds, gather_dim):
            last = (gather_dim, group_name, biases, result_scales, out_dtypes, use_fast_accum)
            return former(A, Bs, A_scale, B_scales, *last)
        *results, whole = torch.ops.tandem.all_gather_scaled_matmul(
            A.movedim(gather_dim, 0),
            Bs,
            _scale_of_rows(A_scale, gather_dim),
            B_scales,
            [one for one in biases if one is not None],
            "none",
            kinds[0],
            True,
            _groups.resolve(group_name),
            all(use_fast_accum),
        )
        return whole.movedim(0, gather_dim), [one.movedim(0, gather_dim) for one in results]

    return run


def _scaled_matmul_reduce_scatter(key: str) -> Any:
    former = _former["fused_scaled_matmul_reduce_scatter", key]

    def run(
        A: torch.Tensor,
        B: torch.Tensor,
        A_scale: torch.Tensor,
        B_scale: torch.Tensor,
        reduce_op: str,
        orig_scatter_dim: int,
        scatter_dim_after_maybe_reshape: int,
        group_name: Any,
        output_shape: list[int] | None,
        bias: torch.Tensor | None = None,
        result_scale: torch.Tensor | None = None,
        out_dtype: torch.dtype | None = None,
        use_fast_accum: bool = False,
    ) -> torch.Tensor:
        group = _groups.resolve(group_name)
        size = _groups.size_of(group)
        (kind,) = symm_mem._maybe_convert_scalar_types_to_dtypes([out_dtype])
        axes = (orig_scatter_dim, scatter_dim_after_maybe_reshape)
        is_plain = reduce_op == "sum" and axes == (0, 0) and A.dim() == 2 and A.shape[0] % size == 0
        if not is_plain or not _takes_scaled(A, [B], A_scale, [B_scale], [bias], [result_scale], [kind], 0):
            last = (reduce_op, *axes, group_name, output_shape, bias, result_scale, out_dtype, use_fast_accum)
            return former(A, B, A_scale, B_scale, *last)
        result = torch.ops.tandem.scaled_matmul_reduce_scatter(
            A, B, _scale_of_rows(A_scale, 0), B_scale, bias, "none", kind, group, use_fast_accum
        )
        return result if output_shape is None else result.view(output_shape[0] // size, *output_shape[1:])

    return run


_KERNELS = {
    "fused_all_gather_matmul": _all_gather_matmul,
    "fused_matmul_reduce_scatter": _matmul_reduce_scatter,
    "fused_all_gather_scaled_matmul": _all_gather_scaled_matmul,
    "fused_scaled_matmul_reduce_scatter": _scaled_matmul_reduce_scatter,
}


def enable_async_tp() -> None:
    """Lets torch.ops.symm_mem.fused_* run on Tandem, until the process ends, for tensors on CPUs and GPUs."""
    global _library
    if _library is not None:
        return
    made = torch.library.Library("symm_mem", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older versions warn of each override
            for key in ("CPU", "CUDA"):
                overrides = {} if key == "CPU" else {"allow_override": True}
                for name, kernel in _KERNELS.items():
                    made.impl(name, kernel(key), key, **overrides)
    except RuntimeError as error:
        made._destroy()
        text = str(error).splitlines()[0]
        raise errors.Unsupported(f"torch {torch.__version__} has other symm_mem operators: {text}") from error
    _library = made
