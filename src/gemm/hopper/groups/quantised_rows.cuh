#pragma once
/// A thread's part of two rows of C that share a scale, before they become fp8 values.

#include "tandem/advanced/gemm.h"

namespace tandem::cuda {

/// The values of 128 columns of two rows, 64 * Boxes / 4 of them for each thread, in the layout of TileBox.
template <int Boxes, int Cols>
struct QuantisedRows {
  float values[Boxes][Cols / 2];
  float scales[2];

  /// Divides the values by their row's scale. Columns from `columns` on are not C's. All threads of a warp take part.
  __device__ void quantise(int first_column, int columns, int thread) {
    float greatest[2] = {0, 0};
#pragma unroll
    for (int box = 0; box < Boxes; ++box)
#pragma unroll
      for (int i = 0; i < Cols / 2; ++i) {
        const int column = first_column + box * Cols + i / 4 * 8 + thread % 4 * 2 + i % 2;
        if (column < columns) greatest[i / 2 % 2] = fmaxf(greatest[i / 2 % 2], fabsf(values[box][i]));
      }
    float inverse[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      // Four threads have a row.
      greatest[row] = fmaxf(greatest[row], __shfl_xor_sync(~0U, greatest[row], 1));
      greatest[row] = fmaxf(greatest[row], __shfl_xor_sync(~0U, greatest[row], 2));
      scales[row] = scale_of_block(greatest[row]);
      inverse[row] = 1.0F / scales[row];
    }
#pragma unroll
    for (int box = 0; box < Boxes; ++box)
#pragma unroll
      for (int i = 0; i < Cols / 2; ++i) values[box][i] *= inverse[i / 2 % 2];
  }

  /// Stores both rows' scales for block `block` of the columns. The first row is `row` of `rows`.
  __device__ void store_scales(float* to, int row, int rows, int block, int blocks, int thread) const {
    if (thread % 4 != 0) return;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (row + 8 * i < rows) to[static_cast<Size>(row + 8 * i) * blocks + block] = scales[i];
  }
};

}  // namespace tandem::cuda
