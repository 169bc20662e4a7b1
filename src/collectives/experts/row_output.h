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

  /// Stores a piece of a token's row to all its places.
  template <class Block, class Values>
  TANDEM_DEVICE void store(Block& block, const Choices<std::int32_t>& places, int pe, Size token, Range piece,
                           const Values& row) const {
    for_rows(places, pe, token, [&](Size to) { block.store(rows + to * row_bytes, piece, row); });
  }
  template <class Block, class Values>
  TANDEM_DEVICE void store_scales(Block& block, const Choices<std::int32_t>& places, int pe, Size token, Range its,
                                  const Values& values) const {
    for_rows(places, pe, token, [&](Size to) {
      if (columns == nullptr)
        block.store(scales + to * groups, its, values);
      else
        block.store_at(scales + to, block.template load<std::int32_t>(columns, its), values);
    });
  }

 private:
  template <class F>
  TANDEM_DEVICE void for_rows(const Choices<std::int32_t>& places, int pe, Size token, const F& f) const {
    if (max_tokens > 0) {
      if (any_here(places)) f(pe * max_tokens + token);
      return;
    }
    for (const std::int32_t place : places.of)
      if (place >= 0) f(Size{place});
  }
};

}  // namespace tandem::kernels
