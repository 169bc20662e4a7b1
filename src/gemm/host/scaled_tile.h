#pragma once
/// Products on the host whose factors have scales of blocks.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// Computes rows and columns of the product with GemmScales::blocks, in the order of additions that GemmScales names.
/// `a` holds `rows` rows, of which the first is row `row` of C, and `b` begins with column cols.begin of group `group`.
/// A block's product is one of host_gemm_tile. `sums` gets rows x cols.size() values.
void multiply_scaled(const Gemm& gemm, const std::byte* a, const std::byte* b, Size row, Size rows, Range cols,
                     int group, float* sums);

}  // namespace tandem
