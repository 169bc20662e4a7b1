#include "collectives/all_reduce_norm/row_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::kernels {

namespace {

/// Bytes of a part where there are blocks enough: a vector for each thread of one warp on each scheduler of an SM.
constexpr Size kPartBytes = 2048;
/// More parts would not fit the fragment in which a block receives all their sums.
constexpr int kMostParts = 64;

}  // namespace

Size most_row_parts(Size hidden, Size element_bytes) { return ceil_div(hidden * element_bytes, kPartBytes); }

bool can_split_rows(Size hidden, int blocks, Size element_bytes) {
  return ceil_div(hidden * element_bytes, kMostPartBytes<LL128Line>) <= std::min(blocks, kMostParts);
}

RowParts row_parts(Size hidden, Size rows, int blocks, Size fragment, Size element_bytes) {
  const Size least = ceil_div(hidden, fragment);
  const Size allowed = std::min(blocks, kMostParts);
  if (least > allowed)
    throw Unsupported(
        fmt::format("all_reduce_norm: a row of {} elements has at least {} parts for split rows, allowed "
                    "with {} blocks are {}",
                    hidden, least, blocks, allowed));
  const Size most = std::min(most_row_parts(hidden, element_bytes), allowed);
  const Size few = std::max(least, std::min<Size>(2, most));
  const Size count = std::clamp(blocks / std::max<Size>(rows, 1), few, std::max(few, most));
  RowParts parts;
  parts.elements = round_up(ceil_div(hidden, count), kScaleGroup);
  parts.count = static_cast<int>(ceil_div(hidden, parts.elements));
  return parts;
}

}  // namespace tandem::kernels
