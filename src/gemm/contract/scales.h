#pragma once
/// Scales of a GEMM's blocks.

#include "tandem/advanced/gemm_order.h"

namespace tandem {

/// Throws InvalidArgument with the field of the scales that does not suit the others.
void check_scales(const Gemm& gemm);

/// Returns the floats of GemmScales::a, b and out.
Size scales_of_a(const Gemm& gemm);
Size scales_of_b(const Gemm& gemm);
Size scales_of_c(const Gemm& gemm);

/// Returns the block of n that has column `column` of B.
Size block_of_column(Size column, bool gated);
/// Returns the places in GemmScales::b of columns of a group's B.
Range scales_of_columns(const Gemm& gemm, Range cols, int group);
/// Returns the row of A whose scales belong to a row of C; -1: a row of zeros.
Size row_of_scales(const Gemm& gemm, Size row);

/// Returns the blocks of a row of C that these columns of the product have.
Range blocks_of_c(const Gemm& gemm, Range cols);

/// Calls read(scales, range) for each range of the scales that a tile reads.
template <class F>
void for_each_scale(const Gemm& gemm, const GemmTile& tile, const F& read) {
  const GemmScales& scales = gemm.scales;
  constexpr Range kOne{0, 1};
  const Size of_row = scales.of_row(gemm.k);
  if (of_row == 0) read(scales.a, kOne);
  if (of_row > 0 && gemm.groups.a_rows == nullptr) read(scales.a, {tile.rows.begin * of_row, tile.rows.end * of_row});
  for (Size row = tile.rows.begin; of_row > 0 && gemm.groups.a_rows != nullptr && row < tile.rows.end; ++row)
    if (const Size from = row_of_scales(gemm, row); from >= 0) read(scales.a, {from * of_row, (from + 1) * of_row});
  read(scales.b, scales_of_columns(gemm, tile.cols, tile.group));
  read(scales.c, kOne);
}

/// Makes blocks of `values`, which are these rows and columns of C without gaps, fp8_e4m3 values with a scale each, and
/// stores the scales. Columns begin with a block.
void quantise_blocks(const Gemm& gemm, Range rows, Range cols, float* values);

}  // namespace tandem
