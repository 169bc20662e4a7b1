#pragma once
/// Scales of the fp8 values of a GEMM.

#include "tandem/numeric.h"
#include "tandem/range.h"

namespace tandem {

/// Values that share a scale where scales are those of blocks: 128 of a row, or 128x128 of B.
inline constexpr Size kScaleBlock = 128;

/// Returns the number of blocks of `count` values.
TANDEM_DEVICE constexpr Size scale_blocks(Size count) { return (count + kScaleBlock - 1) / kScaleBlock; }

/// Returns the scale of a block with values up to `greatest`, which makes them fp8_e4m3 values up to 448. It is 1 for
/// values so small that their scale has no inverse.
TANDEM_DEVICE inline float scale_of_block(float greatest) { return greatest < 1e-30F ? 1.0F : greatest / 448.0F; }

/// Scales of fp8 values, f32 in the GPU's memory; null means 1. They are applied to the f32 sum:
/// C[i][j] = activation(a[i] * b[j] * sum + bias[j]) * c.
///
/// With `blocks` they are those of DeepSeek-V3: `a` is [m][ceil(k / 128)], `b` is [blocks of n][ceil(k / 128)]. The sum
/// is computed in f32, block by block in the order of k: sum = fma(product of the block, a * b, sum). A gated
/// activation's gates have blocks of their own, as have its ups. They follow each other in turns: gates 0 to 127, ups 0
/// to 127, and so on. So B has 2 * ceil(n / 256) blocks of n, and else ceil(n / 128).
///
/// With groups, `b` has the scales of each B, one B behind the other, also if each has only one. With
/// GemmGroups::a_rows, scales of rows are those of the rows of A.
///
/// All scales have to be there when the GEMM begins. A GemmGate delays the loads of A's rows, and not those of scales.
struct GemmScales {
  const float* a = nullptr;   ///< scales of A
  bool a_per_row = false;     ///< one scale for each of the m rows, else one for A
  const float* b = nullptr;   ///< scales of B
  bool b_per_column = false;  ///< one scale for each of the n columns, else one for B
  const float* c = nullptr;   ///< one factor for C
  bool blocks = false;        ///< `a` and `b` have one scale for each block
  /// If set, C becomes fp8_e4m3 with a scale for each block of a row, which is stored here: [m][ceil(columns of C /
  /// 128)], see scale_of_block. C's values are multiplied by the scale's inverse before the conversion.
  float* out = nullptr;

  /// Returns the scales of a row of A.
  TANDEM_DEVICE Size of_row(Size k) const { return blocks ? scale_blocks(k) : (a_per_row ? 1 : 0); }
  /// Returns the blocks of n columns of B.
  TANDEM_DEVICE static Size blocks_of_columns(Size n, bool gated) {
    return gated ? 2 * scale_blocks((n + 1) / 2) : scale_blocks(n);
  }
};

}  // namespace tandem
