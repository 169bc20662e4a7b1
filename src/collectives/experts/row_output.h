#pragma once
/// The rows that a dispatch leaves at their experts.

#include "collectives/experts/routing.h"

namespace tandem::kernels {

/// Calls f(u, bytes) for the pieces of some bytes, which are at most kAtOnce.
template <int kAtOnce, class F>
TANDEM_DEVICE void for_pieces(Range some, Size piece_bytes, const F& f) {
  for (int u = 0; u < kAtOnce; ++u) {
    const Range piece{some.begin + u * piece_bytes, min(some.begin + (u + 1) * piece_bytes, some.end)};
    if (!piece.empty()) f(u, piece);
  }
}

struct RowOutput {
  std::byte* rows = nullptr;
  float* scales = nullptr;
  Size row_bytes = 0;
  Size groups = 0;                        // scales of a row
  const std::int32_t* columns = nullptr;  // [groups]: places of a row's scales by group, or null
  Size max_tokens = 0;                    // of the layout in place, else 0

  /// The rows of a token here.
  template <class Places>
  struct Rows {
    Places places;
    std::uint32_t left;  // bits of the choices that have a row
    Size in_place;       // the row, or -1

    /// Calls f(row) for each of them.
    template <class F>
    TANDEM_DEVICE void each(const F& f) const {
      for (std::uint32_t bits = left; bits != 0; bits &= bits - 1)
        f(in_place >= 0 ? in_place : Size{places.at(lowest_bit(bits))});
    }
  };
  template <class Places>
  TANDEM_DEVICE Rows<Places> rows_of(const Places& places, int pe, Size token) const {
    if (max_tokens == 0) return {places, rows_here(places), -1};
    return {places, any_here(places) ? 1U : 0U, pe * max_tokens + token};
  }
  TANDEM_DEVICE std::byte* row(Size number) const { return rows + number * row_bytes; }

  /// Stores a piece of a row to all of these.
  template <class Block, class List, class Values>
  TANDEM_DEVICE void store(Block& block, const List& list, Range piece, const Values& values) const {
    list.each([&](Size to) { block.store(row(to), piece, values); });
  }
  /// Stores several pieces to all of these.
  template <class T, int kAtOnce, class Block, class List, class Loaded>
  TANDEM_DEVICE void store_rows(Block& block, const List& list, Range some, Size piece_bytes,
                                const Loaded& loaded) const {
    list.each([&](Size to) {
      T* const its = reinterpret_cast<T*>(row(to));
      for_pieces<kAtOnce>(some, piece_bytes, [&](int u, Range piece) { block.store(its, piece, loaded[u]); });
    });
  }
  /// Stores scales to all of these rows.
  template <class Block, class List, class Values>
  TANDEM_DEVICE void store_scales(Block& block, const List& list, Range its, const Values& values) const {
    list.each([&](Size to) {
      if (columns == nullptr)
        block.store(scales + to * groups, its, values);
      else
        block.store_at(scales + to, block.template load<std::int32_t>(columns, its), values);
    });
  }
};

}  // namespace tandem::kernels
