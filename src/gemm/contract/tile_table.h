#pragma once
/// The tile order of a GEMM as a GPU's scheduler reads it: TileSequence's pieces, worked out on the host, so that a
/// block finds its tile with one division of 32 bits.

#include "tandem/advanced/gemm_order.h"

namespace tandem {

inline constexpr int kMostShards = 8;
inline constexpr int kMostPieces = 64;

/// One piece of the row partition, in the order in which pieces are computed.
struct TablePiece {
  int first = 0;  ///< units of work in the pieces before it
  int begin = 0;  ///< its rows
  int end = 0;
  std::int16_t owner = 0;
  std::int16_t slot = 0;
};

/// A unit of work is what a cluster of blocks computes together: `cluster` tiles below one another.
struct TileTable {
  static constexpr bool kShares = false;  ///< no depth of a unit: see SharedTileTable
  TablePiece pieces[kMostPieces];
  int count = 0;    ///< of pieces
  int units = 0;    ///< in all pieces together
  int columns = 0;  ///< tiles side by side
  int tile_m = 0;
  int cluster = 1;
  int group = 0;  ///< cluster panels that are computed column by column before the next ones; at least 1
};

/// A tile of one block: the piece's place in the table, the panel within the piece (beyond its end: nothing to do but
/// to help the cluster), the column.
struct TablePlace {
  int piece = 0;
  int panel = 0;
  int column = 0;
};

TANDEM_DEVICE inline int panels_of(const TileTable& table, const TablePiece& piece) {
  const int unit = table.tile_m * table.cluster;
  return (piece.end - piece.begin + unit - 1) / unit;
}

/// Where unit `unit` < units lies, for the block with number `rank` in its cluster. `piece`: where to begin to look, a
/// piece that does not lie behind the unit.
TANDEM_DEVICE inline TablePlace place_of(const TileTable& table, int unit, int rank, int piece) {
  while (piece + 1 < table.count && unit >= table.pieces[piece + 1].first) ++piece;
  const int panels = panels_of(table, table.pieces[piece]);
  int rest = unit - table.pieces[piece].first;
  const int of_group = table.group * table.columns;
  const int group = rest / of_group;
  rest -= group * of_group;
  const int left = panels - group * table.group;
  const int height = left < table.group ? left : table.group;
  const int column = rest / height;
  return {piece, (group * table.group + rest - column * height) * table.cluster + rank, column};
}

/// The table of a GEMM for a kernel with `cluster` blocks in a cluster. Throws Unsupported where it does not fit.
TileTable make_tile_table(const Gemm& gemm, int cluster);

}  // namespace tandem
