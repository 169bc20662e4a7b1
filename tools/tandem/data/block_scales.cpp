#include "tools/tandem/data/block_scales.h"

#include <cmath>

#include "gemm/contract/activation.h"
#include "gemm/contract/scales.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {
namespace {

constexpr std::uint64_t kStreamOfABlocks = 5, kStreamOfBBlocks = 6;

}  // namespace

BlockScales::BlockScales(const OperatorRun& run, int pes, std::uint64_t seed) : run_(run), pes_(pes), seed_(seed) {}

std::vector<BlockScales::Part> BlockScales::parts() const {
  if (gathers()) return {{0, {0, run_.options.k}}};
  std::vector<Part> all;
  all.reserve(static_cast<std::size_t>(pes_));
  for (int pe = 0; pe < pes_; ++pe) all.push_back({pe, split(run_.options.k, pes_)[pe]});
  return all;
}

Range BlockScales::columns_of(int pe) const {
  return gathers() ? split(run_.options.n, pes_)[pe] : Range{0, run_.options.n};
}

/// The scale of a block is near 1, and never 0.
float BlockScales::scale(std::uint64_t stream, Size place) const {
  return std::exp2(convert<float>(NormalData<float>(seed_)(stream, place)) / 4);
}

float BlockScales::a_scale(int pe, Size row, Size step) const {
  return scale(kStreamOfABlocks, (row * pes_ + pe) * scale_blocks(run_.options.k) + step);
}

float BlockScales::b_scale(int pe, Size block, Size step) const {
  return scale(kStreamOfBBlocks, (block * pes_ + pe) * scale_blocks(run_.options.k) + step);
}

std::vector<float> BlockScales::of_a(int pe, Range rows) const {
  const Part part = parts()[gathers() ? 0 : static_cast<std::size_t>(pe)];
  std::vector<float> all;
  for (Size row = rows.begin; row < rows.end; ++row)
    for (Size step = 0; step < scale_blocks(part.depth.size()); ++step) all.push_back(a_scale(part.pe, row, step));
  return all;
}

std::vector<float> BlockScales::of_b(int pe) const {
  const Part part = parts()[gathers() ? 0 : static_cast<std::size_t>(pe)];
  const Size blocks = GemmScales::blocks_of_columns(columns_of(pe).size(), is_gated(run_.options.activation));
  std::vector<float> all;
  for (Size block = 0; block < blocks; ++block)
    for (Size step = 0; step < scale_blocks(part.depth.size()); ++step) all.push_back(b_scale(pe, block, step));
  return all;
}

template <class OfBlock>
std::vector<float> BlockScales::scaled(Size count, const std::byte* values, const OfBlock& of_block) const {
  const Size k = run_.options.k;
  std::vector<float> all(static_cast<std::size_t>(count * k));
  dispatch(run_.options.type, [&]<class T>() {
    const T* const from = reinterpret_cast<const T*>(values);
    for_chunks(count, 16, [&](Range some) {
      for (Size i = some.begin; i < some.end; ++i)
        for (const Part& part : parts())
          for (Size begin = part.depth.begin; begin < part.depth.end; begin += kScaleBlock) {
            const float factor = of_block(i, part.pe, (begin - part.depth.begin) / kScaleBlock);
            for (Size l = begin; l < min(begin + kScaleBlock, part.depth.end); ++l)
              all[static_cast<std::size_t>(i * k + l)] = convert<float>(from[i * k + l]) * factor;
          }
    });
  });
  return all;
}

std::vector<float> BlockScales::scaled_a(const std::vector<Size>& rows, const std::byte* values) const {
  return scaled(static_cast<Size>(rows.size()), values,
                [&](Size i, int pe, Size step) { return a_scale(pe, rows[static_cast<std::size_t>(i)], step); });
}

std::vector<float> BlockScales::scaled_b(const std::vector<Size>& columns, const std::byte* values) const {
  const bool gated = is_gated(run_.options.activation);
  return scaled(static_cast<Size>(columns.size()), values, [&](Size i, int pe, Size step) {
    const Size column = columns[static_cast<std::size_t>(i)];
    if (!gathers()) return b_scale(pe, block_of_column(column, gated), step);
    const auto owner = static_cast<int>(split(run_.options.n, pes_).part_of(column));
    return b_scale(owner, block_of_column(column - columns_of(owner).begin, gated), step);
  });
}

}  // namespace tandem::cli
