#include "gemm/contract/scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/error.h"

namespace tandem {

namespace {

Size groups_of(const Gemm& gemm) { return max(gemm.groups.count, 1); }

void check_blocks(const Gemm& gemm) {
  const GemmScales& scales = gemm.scales;
  if (scales.a == nullptr || scales.b == nullptr)
    throw InvalidArgument(fmt::format("gemm: scales.blocks is set and scales.{} null, allowed: both scales of blocks",
                                      scales.a == nullptr ? "a" : "b"));
  if (scales.a_per_row || scales.b_per_column)
    throw InvalidArgument(fmt::format("gemm: scales.{} is set, allowed: not with scales.blocks",
                                      scales.a_per_row ? "a_per_row" : "b_per_column"));
}

void check_out(const Gemm& gemm) {
  if (gemm.out_type != DType::kE4M3)
    throw InvalidArgument(
        fmt::format("gemm: out_type is {}, allowed: {} with scales.out", name(gemm.out_type), name(DType::kE4M3)));
  if (gemm.scales.c != nullptr) throw InvalidArgument("gemm: scales.c is set, allowed: not with scales.out");
  if (gemm.destination.is_partial())
    throw InvalidArgument("gemm: scales.out is set, allowed: none where tiles are partial sums");
  if (const Size columns = columns_after(gemm.activation, gemm.tile_n); columns % kScaleBlock != 0)
    throw InvalidArgument(fmt::format("gemm: tile_n is {}, allowed with scales.out: multiples of {}", gemm.tile_n,
                                      kScaleBlock * (is_gated(gemm.activation) ? 2 : 1)));
}

}  // namespace

void check_scales(const Gemm& gemm) {
  if (gemm.fast_accumulation && gemm.type != DType::kE4M3)
    throw InvalidArgument(
        fmt::format("gemm: fast_accumulation is set with type {}, allowed: fp8_e4m3", name(gemm.type)));
  if (gemm.fast_accumulation && gemm.scales.blocks)
    throw InvalidArgument("gemm: fast_accumulation is set, allowed: not with scales.blocks");
  if (gemm.scales.blocks) check_blocks(gemm);
  if (gemm.scales.out != nullptr) check_out(gemm);
}

Size scales_of_a(const Gemm& gemm) {
  const Size rows = gemm.groups.a_rows != nullptr ? gemm.groups.rows_of_a : gemm.m;
  const Size of_row = gemm.scales.of_row(gemm.k);
  return of_row == 0 ? 1 : rows * of_row;
}

Size scales_of_b(const Gemm& gemm) {
  const GemmScales& scales = gemm.scales;
  if (!scales.blocks) return groups_of(gemm) * (scales.b_per_column ? gemm.n : 1);
  return groups_of(gemm) * GemmScales::blocks_of_columns(gemm.n, is_gated(gemm.activation)) * scale_blocks(gemm.k);
}

Size scales_of_c(const Gemm& gemm) { return gemm.m * scale_blocks(columns_after(gemm.activation, gemm.n)); }

Size block_of_column(Size column, bool gated) {
  return gated ? column / (2 * kScaleBlock) * 2 + column / kGateGroup % 2 : column / kScaleBlock;
}

Range scales_of_columns(const Gemm& gemm, Range cols, int group) {
  const GemmScales& scales = gemm.scales;
  if (scales.blocks) {
    const bool gated = is_gated(gemm.activation);
    const Size steps = scale_blocks(gemm.k);
    const Size unit = gated ? 2 * kScaleBlock : kScaleBlock;
    const Size blocks = GemmScales::blocks_of_columns(gemm.n, gated);
    const Size first = group * blocks, of_unit = gated ? 2 : 1;
    return {(first + cols.begin / unit * of_unit) * steps, (first + ceil_div(cols.end, unit) * of_unit) * steps};
  }
  const Size first = group * (scales.b_per_column ? gemm.n : 1);
  return scales.b_per_column ? Range{first + cols.begin, first + cols.end} : Range{first, first + 1};
}

Range blocks_of_c(const Gemm& gemm, Range cols) {
  return {columns_after(gemm.activation, cols.begin) / kScaleBlock,
          scale_blocks(columns_after(gemm.activation, cols.end))};
}

Size row_of_scales(const Gemm& gemm, Size row) {
  return gemm.groups.a_rows != nullptr ? Size{gemm.groups.a_rows[row]} : row;
}

void quantise_blocks(const Gemm& gemm, Range rows, Range cols, float* values) {
  const Size blocks = scale_blocks(columns_after(gemm.activation, gemm.n));
  for (Size row = rows.begin; row < rows.end; ++row)
    for (Size begin = cols.begin; begin < cols.end; begin += kScaleBlock) {
      const Size count = min(kScaleBlock, cols.end - begin);
      float greatest = 0;
      for (Size i = 0; i < count; ++i) greatest = std::max(greatest, std::fabs(values[i]));
      const float scale = scale_of_block(greatest);
      gemm.scales.out[row * blocks + begin / kScaleBlock] = scale;
      for (Size i = 0; i < count; ++i) values[i] *= 1 / scale;
      values += count;
    }
}

}  // namespace tandem
