#include "collectives/all_reduce_norm/row_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::kernels {

namespace {

/// With more parts their exchange would take longer than what they save.
constexpr int kMostParts = 128;

}  // namespace

Size count_row_parts(Size hidden, Size element_bytes) { return ceil_div(hidden * element_bytes, kPartBytes); }

bool can_split_rows(Size hidden, int blocks, Size element_bytes) {
  return count_row_parts(hidden, element_bytes) <= std::min(blocks, kMostParts);
}

RowParts row_parts(Size hidden, int blocks, Size element_bytes) {
  const Size count = count_row_parts(hidden, element_bytes);
  if (!can_split_rows(hidden, blocks, element_bytes))
    throw Unsupported(
        fmt::format("all_reduce_norm: a row of {} elements has {} parts for split rows, allowed with {} blocks are {}",
                    hidden, count, blocks, std::min(blocks, kMostParts)));
  RowParts parts;
  parts.elements = round_up(ceil_div(hidden, count), kScaleGroup);
  parts.count = static_cast<int>(ceil_div(hidden, parts.elements));
  return parts;
}

}  // namespace tandem::kernels
