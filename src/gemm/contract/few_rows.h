#pragma once
/// Products of few rows on GPUs: how their kernels divide the work, and what they need to add up what all PEs computed.
///
/// Up to kFewRowsBlock rows a block computes 64 columns. Of more rows, up to kFewRowsMost, it computes 128 columns and
/// half of the depth, its slice; of what the two slices have it then adds up one half of the rows.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// Columns of C that are exchanged together, for kFewRowsBlock rows.
inline constexpr int kFewRowsColumns = 64;
inline constexpr int kFewRowsBlock = 64;
inline constexpr int kFewRowsMost = 256;
inline constexpr int kFewRowsSlices = 2;

/// Of the memory in which PEs exchange their sums: a block for each tile, there for two calls in turn, and of each for
/// each PE. A tile's are the 16-byte vectors of its 128 threads, one for each 16 rows. Behind them, where there are
/// more than kFewRowsBlock rows, the slices of this PE alone meet.
struct FewRowsExchange {
  static constexpr int kCalls = 2;
  static constexpr int kThreads = 128;
  static constexpr int kVector = 16;
  static constexpr Size kTileBytes = Size{kFewRowsBlock / 16} * kThreads * kVector;
  /// Of what a slice gives away: sums in f32.
  static constexpr Size kSliceBytes = Size{kFewRowsMost / kFewRowsSlices} * kFewRowsColumns * 4;

  int columns = 0;  ///< in tiles, an even number
  int pes = 0;

  TANDEM_DEVICE FewRowsExchange(int n, int members)
      : columns(2 * static_cast<int>(ceil_div(n, 2 * kFewRowsColumns))), pes(members) {}
  /// For products of up to so many rows.
  TANDEM_DEVICE int tiles(Size rows) const {
    return columns * (rows <= kFewRowsBlock ? 1 : kFewRowsMost / kFewRowsBlock);
  }
  TANDEM_DEVICE Size bytes(Size rows) const {
    return rows <= kFewRowsBlock ? begin(tiles(rows)) : slice_place(columns, 0);
  }
  /// The tile of the `block`-th kFewRowsBlock rows.
  TANDEM_DEVICE int tile(int column, int block) const { return block * columns + column; }
  /// Where PE `from` puts its part of a tile.
  TANDEM_DEVICE Size place(Epoch call, int from, int tile) const {
    return begin(tile) + (static_cast<Size>(call % kCalls) * pes + from) * kTileBytes;
  }
  /// Where the sums for slice `to` are put.
  TANDEM_DEVICE Size slice_place(int column, int to) const {
    return begin(tiles(kFewRowsMost)) + (static_cast<Size>(column) * kFewRowsSlices + to) * kSliceBytes;
  }

 private:
  TANDEM_DEVICE Size begin(int tile) const { return static_cast<Size>(tile) * kCalls * pes * kTileBytes; }
};

/// Whether a kernel adds up so many rows. Between the two largest ones a product of cuBLASLt's and an all-reduce take
/// less time than the larger one.
TANDEM_DEVICE inline bool few_rows_add_up(Size rows) {
  constexpr Size kFewestOfLargest = 208;
  return rows <= kFewRowsMost / 2 || (rows >= kFewestOfLargest && rows <= kFewRowsMost);
}

/// Whether nearly all of a GPU's `sms` SMs have about as much to do.
TANDEM_DEVICE inline bool few_rows_fill(Size rows, Size n, int sms) {
  if (rows <= kFewRowsBlock) {
    const Size tiles = ceil_div(n, kFewRowsColumns);
    return 10 * tiles >= 9 * ceil_div(tiles, sms) * sms;
  }
  // Clusters of two blocks. None has two turns: the slices wait for one another.
  constexpr Size kCluster = 2;
  const Size blocks = ceil_div(n, 2 * kFewRowsColumns * kCluster) * kCluster * kFewRowsSlices;
  return blocks <= sms && 10 * blocks >= 9 * sms;
}

}  // namespace tandem
