"""A grouped GEMM in Triton, with TMA and tuned tiles, as a peer of grouped_peers.py."""

from __future__ import annotations

import triton
import triton.language as tl


def _shaped(arguments: dict) -> None:
    """Gives the descriptors the boxes of the tiles."""
    rows, columns, depth = arguments["ROWS"], arguments["COLUMNS"], arguments["DEPTH"]
    arguments["a"].block_shape = [rows, depth]
    arguments["b"].block_shape = [columns, depth]
    arguments["c"].block_shape = [rows, columns]


def _tiles(columns: int, depth: int, stages: int, warps: int) -> triton.Config:
    return triton.Config(
        {"ROWS": 128, "COLUMNS": columns, "DEPTH": depth}, num_stages=stages, num_warps=warps, pre_hook=_shaped
    )


@triton.autotune(
    configs=[_tiles(256, 64, 4, 8), _tiles(256, 64, 3, 8), _tiles(128, 64, 4, 4), _tiles(128, 128, 3, 8),
             _tiles(128, 128, 4, 8)],
    key=["n", "k", "SCALED"],
)  # fmt: skip
@triton.jit
def grouped_product(a, b, c, panels, of_a, of_b, count, n, k, SCALED: tl.constexpr, ROWS: tl.constexpr,
                    COLUMNS: tl.constexpr, DEPTH: tl.constexpr):  # fmt: skip
    """One tile: the rows of one panel, and COLUMNS columns of its group. `panels` are those of grouped_gemm.py."""
    program, together = tl.program_id(0), 8
    tiles = tl.cdiv(n, COLUMNS)
    run = program // (together * tiles)  # panels that are computed column by column
    first = run * together
    wide = tl.minimum(together, count - first)
    within = program - first * tiles
    panel, column = first + within % wide, (within // wide) * COLUMNS
    row = tl.load(panels + 4 * panel)
    group = tl.load(panels + 4 * panel + 1) >> 16
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for depth in range(0, k, DEPTH):
        of_rows = a.load([row, depth])
        of_columns = b.load([group * n + column, depth])
        if SCALED:
            step, steps = depth // 128, tl.cdiv(k, 128)
            scale = tl.load(of_a + (row + tl.arange(0, ROWS)) * steps + step)
            blocks = tl.cdiv(n, 128)
            block = tl.minimum((column + tl.arange(0, COLUMNS)) // 128, blocks - 1)
            scale_b = tl.load(of_b + (group * blocks + block) * steps + step)
            sums += tl.dot(of_rows, of_columns.T) * scale[:, None] * scale_b[None, :]
        else:
            sums = tl.dot(of_rows, of_columns.T, sums)
    c.store([row, column], sums.to(tl.bfloat16))
