#include "gemm/host/scaled_tile.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gemm/contract/scales.h"
#include "gemm/host/host_gemm.h"

namespace tandem {

void multiply_scaled(const Gemm& gemm, const std::byte* a, const std::byte* b, Size row, Size rows, Range cols,
                     int group, float* sums) {
  const Size steps = scale_blocks(gemm.k);
  const Size columns = cols.size();
  const Size element = size_of(gemm.type);
  const bool gated = is_gated(gemm.activation);
  const bool rows_of_b = gemm.b_layout == BLayout::kNxK;
  const float* const of_group = gemm.scales.b + group * GemmScales::blocks_of_columns(gemm.n, gated) * steps;
  std::vector<float> products(static_cast<std::size_t>(rows * columns));
  std::fill_n(sums, rows * columns, 0.0F);
  for (Size step = 0; step < steps; ++step) {
    const Size begin = step * kScaleBlock;
    host_gemm_tile(a + begin * element, gemm.k, b + begin * (rows_of_b ? 1 : gemm.n) * element,
                   rows_of_b ? gemm.k : gemm.n, products.data(), columns, rows, columns,
                   min(kScaleBlock, gemm.k - begin), gemm.type, gemm.b_layout);
    for (Size i = 0; i < rows; ++i) {
      const float of_a = gemm.scales.a[row_of_scales(gemm, row + i) * steps + step];
      for (Size j = 0; j < columns; ++j) {
        const float of_b = of_group[block_of_column(cols.begin + j, gated) * steps + step];
        float& sum = sums[i * columns + j];
        sum = std::fma(products[static_cast<std::size_t>(i * columns + j)], of_a * of_b, sum);
      }
    }
  }
}

}  // namespace tandem
