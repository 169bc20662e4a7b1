#pragma once
/// The tile order of a GEMM in the form that a GPU's scheduler reads. The host computes it from TileSequence, so that a
/// block finds its tile with one 32-bit division.

#include "tandem/advanced/gemm_order.h"

namespace tandem {

inline constexpr int kMostShards = 8;
inline constexpr int kMostTableChunks = 64;

/// One chunk of the row partition. Chunks are in the order of computation.
struct TableChunk {
  int first = 0;  ///< units of work in the chunks before it
  int begin = 0;  ///< first row
  int end = 0;
  std::int16_t owner = 0;
  std::int16_t slot = 0;
};

/// A unit of work is the work of one cluster of blocks: `cluster` vertically adjacent tiles.
struct TileTable {
  static constexpr bool kIsStreamK = false;  ///< no unit is split: see StreamKTileTable
  static constexpr bool kOnDevice = false;   ///< the host knows all units: see PanelTable
  TableChunk chunks[kMostTableChunks];
  int count = 0;    ///< number of chunks
  int units = 0;    ///< in all chunks
  int columns = 0;  ///< tiles in a row
  int tile_m = 0;
  int cluster = 1;
  int group = 0;  ///< cluster panels that are computed column by column before the next group; at least 1
};

/// A tile of one block: the chunk's index in the table, the panel within the chunk, and the column. For a panel beyond
/// the chunk's end the block only helps its cluster.
struct TablePlace {
  int chunk = 0;
  int panel = 0;
  int column = 0;
};

TANDEM_DEVICE inline int panels_of(const TileTable& table, const TableChunk& chunk) {
  const int unit = table.tile_m * table.cluster;
  return (chunk.end - chunk.begin + unit - 1) / unit;
}

/// Returns the place of unit `unit` < units for the block with number `rank` in its cluster. The search starts at chunk
/// `chunk`, which must not lie after the unit.
TANDEM_DEVICE inline TablePlace place_of(const TileTable& table, int unit, int rank, int chunk) {
  while (chunk + 1 < table.count && unit >= table.chunks[chunk + 1].first) ++chunk;
  const int panels = panels_of(table, table.chunks[chunk]);
  int rest = unit - table.chunks[chunk].first;
  const int of_group = table.group * table.columns;
  const int group = rest / of_group;
  rest -= group * of_group;
  const int left = panels - group * table.group;
  const int height = left < table.group ? left : table.group;
  const int column = rest / height;
  return {chunk, (group * table.group + rest - column * height) * table.cluster + rank, column};
}

/// Returns the table of a GEMM for a kernel with `cluster` blocks in a cluster. Throws Unsupported if it does not fit.
TileTable make_tile_table(const Gemm& gemm, int cluster);

}  // namespace tandem
