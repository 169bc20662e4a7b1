#pragma once
/// Tile orders: pure functions from a linear index to a tile, which a GPU's scheduler and the simulator share.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// A tile of C: rows and columns in elements.
struct GemmTile {
  Range rows;     ///< rows of C
  Range cols;     ///< columns of C
  int group = 0;  ///< number of its B
  int chunk = 0;  ///< with groups: its chunk of columns
  int word = 0;   ///< with groups: the first of the gate's words for which it waits
};

/// Enumerates the tiles of a GEMM: row panels in an order of the shards, and columns within a group of panels.
///
/// In an order of shards a panel lies within one chunk of the row partition. Each tile then waits for one chunk and has
/// one owner. The plain row-major order cuts rows every tile_m.
class TileSequence {
 public:
  /// The tiles of `gemm`; reads its sizes, order, rows, `me` and `node_size`.
  TANDEM_DEVICE explicit TileSequence(const Gemm& gemm)
      : rows_(gemm.order == TileOrder::kRowMajor ? RowPartition{gemm.m, 1, 1} : gemm.rows),
        order_(gemm.order),
        me_(gemm.me),
        node_size_(gemm.node_size),
        tile_m_(gemm.tile_m),
        tile_n_(gemm.tile_n),
        group_(gemm.panel_group),
        n_(gemm.n) {}

  /// Rows that are computed together: they have one owner and wait for one word.
  struct Chunk {
    Range rows;     ///< rows of A
    int owner = 0;  ///< the owner of these rows
    int part = 0;   ///< the number within the owner's shard
  };
  /// Returns the number of chunks.
  TANDEM_DEVICE int chunks() const { return rows_.shards * rows_.splits; }
  /// Returns the i-th chunk in the order, 0 <= i < chunks(). It may be empty.
  TANDEM_DEVICE Chunk chunk(int i) const {
    if (order_ == TileOrder::kRowMajor) return {{0, rows_.rows}, 0, 0};
    const int splits = rows_.splits;
    const int peers = rows_.shards - 1;
    int owner_of_chunk = owner(i / splits);
    int part = i % splits;
    if (order_ == TileOrder::kPartsFirst) {
      owner_of_chunk = owner(i % rows_.shards);
      part = i / rows_.shards;
    }
    if (order_ == TileOrder::kInterleaved && i >= splits) {
      const int j = i - splits;  // own shard is done: chunk 0 of every peer, then chunk 1, ...
      owner_of_chunk = owner(1 + j % peers);
      part = j / peers;
    }
    return {rows_.part(owner_of_chunk, part), owner_of_chunk, part};
  }
  /// Shards, and the rows of each. In the plain order all rows are one shard.
  TANDEM_DEVICE int owners() const { return rows_.shards; }
  /// Returns the rows of an owner.
  TANDEM_DEVICE Range rows_of_owner(int owner) const { return rows_.shard(owner); }

  /// Returns the number of tiles.
  TANDEM_DEVICE Size tiles() const {
    Size panels = 0;
    for (int i = 0; i < chunks(); ++i) panels += panels_of(i);
    return panels * columns();
  }

  /// Returns the tile of linear index `i` < tiles(). Chunks follow each other, and within a chunk groups of panels.
  /// Within a group columns are outermost, so that its panels share a column's block of B while it is in cache.
  TANDEM_DEVICE GemmTile tile(Size i) const {
    Place from;
    return tile(i, from);
  }
  /// A chunk by its index in the order, with the number of its first tile.
  struct Place {
    int chunk = 0;   ///< place of the chunk in the order
    Size first = 0;  ///< its first tile
  };
  /// Does the same for callers with ascending `i`. The search starts at `from` and stores the tile's chunk there, so
  /// its cost does not depend on the number of chunks.
  TANDEM_DEVICE GemmTile tile(Size i, Place& from) const {
    for (; i >= from.first + panels_of(from.chunk) * columns(); ++from.chunk)
      from.first += panels_of(from.chunk) * columns();
    const int number = from.chunk;
    i -= from.first;
    const Range rows = chunk(number).rows;
    const Size group = group_ > 0 ? group_ : max(panels_of(number), 1);
    const Size first = i / (group * columns()) * group;
    i -= first * columns();
    const Size panels = min(group, panels_of(number) - first);
    const Size row = rows.begin + (first + i % panels) * tile_m_;
    const Size col = i / panels * tile_n_;
    return {{row, min(row + tile_m_, rows.end)}, {col, min(col + tile_n_, n_)}, 0, 0, 0};
  }

  /// Returns the owner of the `step`-th shard in the order, 0 <= step < shards.
  TANDEM_DEVICE int owner(int step) const {
    const int n = rows_.shards;
    const int nodes = n / node_size_;
    const int my_node = me_ / node_size_;
    const int local = me_ % node_size_;
    switch (order_) {
      case TileOrder::kRing:
        return (me_ - step + n) % n;
      case TileOrder::kPeersFirst:
      case TileOrder::kPartsFirst:
        return (me_ + 1 + step) % n;
      case TileOrder::kOwnNodeFirst:
        return (my_node - step / node_size_ + nodes) % nodes * node_size_ + (local + step) % node_size_;
      case TileOrder::kOtherNodesFirst:
        return (my_node + 1 + step / node_size_) % nodes * node_size_ + (local + 1 + step) % node_size_;
      default:
        return (me_ + step) % n;
    }
  }

 private:
  TANDEM_DEVICE Size columns() const { return ceil_div(n_, tile_n_); }
  TANDEM_DEVICE Size panels_of(int i) const { return ceil_div(chunk(i).rows.size(), tile_m_); }

  RowPartition rows_;
  TileOrder order_;
  int me_;
  int node_size_;
  int tile_m_;
  int tile_n_;
  int group_;
  Size n_;
};

}  // namespace tandem
