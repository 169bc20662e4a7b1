#pragma once
/// Products of few rows on GPUs: how their kernel divides the work, and what it needs to add up what all PEs computed.

#include "tandem/gemm.h"

namespace tandem {

/// Columns of C that a block computes together, for all rows; rows at most.
inline constexpr int kFewRowsColumns = 64;
inline constexpr int kFewRowsMost = 64;

/// Of the memory in which PEs exchange their sums: two calls in turn, and of each a block of each PE for each tile. A
/// tile's are the 16-byte vectors of its 128 threads, one for each 16 rows.
struct FewRowsExchange {
  static constexpr int kCalls = 2;
  static constexpr int kThreads = 128;
  static constexpr int kVector = 16;
  static constexpr Size kTileBytes = Size{kFewRowsMost / 16} * kThreads * kVector;

  int tiles = 0;
  int pes = 0;

  TANDEM_DEVICE FewRowsExchange(int columns, int members)
      : tiles(static_cast<int>(ceil_div(columns, kFewRowsColumns))), pes(members) {}
  TANDEM_DEVICE Size bytes() const { return Size{kCalls} * pes * tiles * kTileBytes; }
  /// Where PE `from` puts its part of a tile.
  TANDEM_DEVICE Size place(Epoch call, int from, int tile) const {
    return ((static_cast<Size>(call % kCalls) * pes + from) * tiles + tile) * kTileBytes;
  }
};

/// Whether the blocks of a GPU with `sms` SMs have about as many tiles each.
TANDEM_DEVICE inline bool few_rows_fill(Size columns, int sms) {
  const Size tiles = ceil_div(columns, kFewRowsColumns);
  return 10 * tiles >= 9 * ceil_div(tiles, sms) * sms;
}

}  // namespace tandem
