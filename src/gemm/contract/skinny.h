#pragma once
/// GEMMs of few rows on GPUs: the division of work in their kernels, and the memory in which PEs add their sums.
///
/// Up to kSkinnyBlock rows a block computes 64 columns. For more rows, up to kSkinnyMost, it computes 128 columns and
/// half of the depth, its slice. The two blocks of a pair of slices then each add one half of the rows.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// Columns of C that are exchanged together, for kSkinnyBlock rows.
inline constexpr int kSkinnyColumns = 64;
inline constexpr int kSkinnyBlock = 64;
inline constexpr int kSkinnyMost = 256;
inline constexpr int kSkinnySlices = 2;

/// The memory in which PEs exchange their sums. Each tile has a block of it for two alternating calls and for each PE.
/// A tile's block holds the 16-byte vectors of its 128 threads, one for each 16 rows. For more than kSkinnyBlock rows
/// the slices of this PE are exchanged in the memory after it.
struct SkinnyExchange {
  static constexpr int kCalls = 2;
  static constexpr int kThreads = 128;
  static constexpr int kVector = 16;
  static constexpr Size kTileBytes = Size{kSkinnyBlock / 16} * kThreads * kVector;
  /// Bytes that a slice gives to the other: sums in f32.
  static constexpr Size kSliceBytes = Size{kSkinnyMost / kSkinnySlices} * kSkinnyColumns * 4;

  int columns = 0;  ///< in tiles, an even number
  int pes = 0;

  TANDEM_DEVICE SkinnyExchange(int n, int members)
      : columns(2 * static_cast<int>(ceil_div(n, 2 * kSkinnyColumns))), pes(members) {}
  /// Number of tiles for products of up to `rows` rows.
  TANDEM_DEVICE int tiles(Size rows) const { return columns * (rows <= kSkinnyBlock ? 1 : kSkinnyMost / kSkinnyBlock); }
  TANDEM_DEVICE Size bytes(Size rows) const {
    return rows <= kSkinnyBlock ? begin(tiles(rows)) : slice_place(columns, 0);
  }
  /// The tile of the `block`-th group of kSkinnyBlock rows.
  TANDEM_DEVICE int tile(int column, int block) const { return block * columns + column; }
  /// The place of PE `from`'s part of a tile.
  TANDEM_DEVICE Size place(Epoch call, int from, int tile) const {
    return begin(tile) + (static_cast<Size>(call % kCalls) * pes + from) * kTileBytes;
  }
  /// Number of words of GemmSum::arrived for products of up to `rows` rows.
  TANDEM_DEVICE int words(Size rows) const { return tiles(rows) * kCalls * pes; }
  /// The word of PE `from`'s part of a tile.
  TANDEM_DEVICE int word(Epoch call, int from, int tile) const {
    return (tile * kCalls + static_cast<int>(call % kCalls)) * pes + from;
  }
  /// The place of the sums for slice `to`.
  TANDEM_DEVICE Size slice_place(int column, int to) const {
    return begin(tiles(kSkinnyMost)) + (static_cast<Size>(column) * kSkinnySlices + to) * kSliceBytes;
  }

 private:
  TANDEM_DEVICE Size begin(int tile) const { return static_cast<Size>(tile) * kCalls * pes * kTileBytes; }
};

/// The memory in which the blocks of a GEMM with GemmNorm exchange the squares of their columns, for two alternating
/// calls: [row][tile of columns] each. The sign bit marks a sum of squares that has arrived.
struct SkinnySquares {
  static constexpr int kCalls = 2;

  int columns = 0;  ///< in tiles
  int stride = 0;   ///< from one row to the next: whole 16-byte vectors

  TANDEM_DEVICE explicit SkinnySquares(int n)
      : columns(static_cast<int>(ceil_div(n, kSkinnyColumns))), stride(static_cast<int>(round_up(columns, 4))) {}
  /// Number of floats.
  TANDEM_DEVICE Size count() const { return Size{kCalls} * kSkinnyBlock * stride; }
  TANDEM_DEVICE Size place(Epoch call, int row, int column) const {
    return (static_cast<Size>(call % kCalls) * kSkinnyBlock + row) * stride + column;
  }
};

/// Returns whether the kernels that add so many rows may norm them, too. Blocks of a cluster start together, and each
/// of them has one tile.
TANDEM_DEVICE inline bool skinny_norms(Size rows, Size n, int sms) {
  constexpr Size kCluster = 2;
  return rows <= kSkinnyBlock && ceil_div(n, kSkinnyColumns * kCluster) * kCluster <= sms;
}

/// Returns whether a kernel adds so many rows. Between the two largest kernels, a cuBLASLt product with an all-reduce
/// takes less time than the larger kernel.
TANDEM_DEVICE inline bool skinny_adds_up(Size rows) {
  constexpr Size kFewestOfLargest = 208;
  return rows <= kSkinnyMost / 2 || (rows >= kFewestOfLargest && rows <= kSkinnyMost);
}

/// Returns whether the sums of a tile have an owner that adds them up. From so many rows on, with more than two PEs,
/// the bytes on the link cost more than a second trip.
TANDEM_DEVICE constexpr bool skinny_has_owners(Size rows, int pes) {
  constexpr Size kFewestRows = 33;
  return rows >= kFewestRows && pes > 2;
}

/// Returns whether nearly all of a GPU's `sms` SMs have about the same work.
TANDEM_DEVICE inline bool skinny_fills(Size rows, Size n, int sms) {
  if (rows <= kSkinnyBlock) {
    const Size tiles = ceil_div(n, kSkinnyColumns);
    return 10 * tiles >= 9 * ceil_div(tiles, sms) * sms;
  }
  // The clusters have two blocks. Every block has one tile, because the slices wait for each other.
  constexpr Size kCluster = 2;
  const Size blocks = ceil_div(n, 2 * kSkinnyColumns * kCluster) * kCluster * kSkinnySlices;
  return blocks <= sms && 10 * blocks >= 9 * sms;
}

/// Returns whether the kernels of few rows suit a product and a GPU with `sms` SMs, apart from the type of A and from
/// alignment.
inline bool skinny_suits(const Gemm& gemm, int sms) {
  // A slice without steps would wait for its first step forever.
  constexpr Size kLeastSlicedDepth = 256;
  const GemmScales& scales = gemm.scales;
  const bool scaled = scales.a != nullptr || scales.b != nullptr || scales.c != nullptr;
  const bool plain = gemm.order == TileOrder::kRowMajor && gemm.own_a == nullptr && gemm.sms == 0 &&
                     gemm.groups.count == 0 && gemm.b_layout == BLayout::kNxK && !scaled &&
                     !is_gated(gemm.activation) && size_of(gemm.out_type) == 2;
  const GemmSum* const sum = gemm.destination.sum();
  const bool norms = sum == nullptr || sum->norm.weight == nullptr || skinny_norms(gemm.m, gemm.n, sms);
  return plain && norms && skinny_fills(gemm.m, gemm.n, sms) && skinny_adds_up(gemm.m) &&
         (gemm.m <= kSkinnyBlock || gemm.k >= kLeastSlicedDepth);
}

}  // namespace tandem
