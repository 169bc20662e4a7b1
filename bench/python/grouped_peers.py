"""Grouped GEMMs of others for grouped_gemm.py: DeepGEMM, where Python has it, and a kernel in Triton.

Both take sorted rows, where the rows of each group begin at a multiple of 128. DeepGEMM compiles its kernels when they
are first called.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import torch

BLOCK = 128
Call = Callable[[], object]


def groups_of_rows(starts: list[int], counts: list[int], rows: int) -> torch.Tensor:
    """The group of each row; -1 between the groups."""
    groups = torch.full((rows,), -1, dtype=torch.int32)
    for group, (start, count) in enumerate(zip(starts, counts, strict=True)):
        groups[start : start + count] = group
    return groups.cuda()


def deep_gemm_call(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, groups: torch.Tensor,
    scales: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Call | None:  # fmt: skip
    """C's rows by DeepGEMM: bf16, or fp8 with `scales` of 128 values of A and of 128x128 of B. None: it is not there."""
    if importlib.util.find_spec("deep_gemm") is None:
        return None
    import deep_gemm

    if scales is None:
        return lambda: deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, c, groups)
    of_a = deep_gemm.get_mn_major_tma_aligned_tensor(scales[0])  # as its kernels read it
    of_b = scales[1].contiguous()
    return lambda: deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, of_a), (b, of_b), c, groups)


def triton_call(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, panels: torch.Tensor, count: int,
    scales: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Call | None:  # fmt: skip
    """The same by Triton: a program for each panel of 128 rows and each tile of columns. None: Triton is not there."""
    if importlib.util.find_spec("triton") is None or count == 0:
        return None
    import triton
    from triton.tools.tensor_descriptor import TensorDescriptor

    if __package__:
        from .grouped_triton import grouped_product
    else:
        from grouped_triton import grouped_product

    groups, n, k = b.shape
    flat = b.view(groups * n, k)
    of_a, of_b = scales if scales is not None else (None, None)

    def run() -> None:
        grid = lambda options: (count * triton.cdiv(n, options["COLUMNS"]),)  # noqa: E731
        grouped_product[grid](
            TensorDescriptor.from_tensor(a, [1, 1]), TensorDescriptor.from_tensor(flat, [1, 1]),
            TensorDescriptor.from_tensor(c, [1, 1]), panels, of_a, of_b, count, n, k, SCALED=scales is not None,
        )  # fmt: skip

    return run
