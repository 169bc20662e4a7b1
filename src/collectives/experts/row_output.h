#pragma once
/// The rows that a dispatch leaves at their experts.

#include "collectives/experts/routing.h"

namespace tandem::kernels {

struct RowOutput {
  std::byte* rows = nullptr;
  float* scales = nullptr;
  Size row_bytes = 0;
  Size groups = 0;                        // scales of a row
  const std::int32_t* columns = nullptr;  // [groups]: places of a row's scales by group, or null
  Size max_tokens = 0;                    // of the layout in place, else 0

  /// The rows of a token with these places.
  TANDEM_DEVICE RowList rows_of(const Choices<std::int32_t>& places, int pe, Size token) const {
    if (max_tokens == 0) return RowList::at(places);
    RowList one;
    one.of.of[0] = static_cast<std::int32_t>(pe * max_tokens + token);
    one.count = any_here(places) ? 1 : 0;
    return one;
  }
  TANDEM_DEVICE std::byte* row(std::int32_t number) const { return rows + number * row_bytes; }

  /// Stores a piece of a row to all of these.
  template <class Block, class Values>
  TANDEM_DEVICE void store(Block& block, const RowList& list, Range piece, const Values& values) const {
    for (int i = 0; i < list.count; ++i) block.store(row(list.of.of[i]), piece, values);
  }
  /// Stores scales to all of these rows.
  template <class Block, class Values>
  TANDEM_DEVICE void store_scales(Block& block, const RowList& list, Range its, const Values& values) const {
    for (int i = 0; i < list.count; ++i) {
      const Size to = list.of.of[i];
      if (columns == nullptr)
        block.store(scales + to * groups, its, values);
      else
        block.store_at(scales + to, block.template load<std::int32_t>(columns, its), values);
    }
  }
};

}  // namespace tandem::kernels
