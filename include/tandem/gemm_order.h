#pragma once
/// Tile orders: linear index -> tile, as pure functions, so that a GPU's scheduler and the simulator agree.

#include "tandem/gemm.h"

namespace tandem {

/// A tile of C: rows and columns in elements.
struct GemmTile {
  Range rows;
  Range cols;
};

/// Enumerates the tiles of a GEMM: row panels in an order that follows the shards, columns within a group of panels.
///
/// Panels never straddle a piece of the row partition where the order follows shards, so that each tile waits for one
/// piece and belongs to one owner; a plain (row-major) order cuts rows every tile_m.
class TileSequence {
 public:
  TANDEM_DEVICE explicit TileSequence(const Gemm& gemm)
      : rows_(gemm.order == TileOrder::kRowMajor ? RowPartition{gemm.m, 1, 1} : gemm.rows),
        order_(gemm.order),
        me_(gemm.me),
        node_size_(gemm.node_size),
        tile_m_(gemm.tile_m),
        tile_n_(gemm.tile_n),
        n_(gemm.n) {}

  TANDEM_DEVICE Size tiles() const {
    Size panels = 0;
    for (int i = 0; i < pieces(); ++i) panels += panels_of(i);
    return panels * columns();
  }

  /// The tile of linear index `i` < tiles(). Pieces come one after the other; within a piece columns are outermost, so
  /// that the panels of a piece share a column's block of B while it is in cache.
  TANDEM_DEVICE GemmTile tile(Size i) const {
    int piece = 0;
    for (; i >= panels_of(piece) * columns(); ++piece) i -= panels_of(piece) * columns();
    const Range rows = rows_of(piece);
    const Size panels = panels_of(piece);
    const Size row = rows.begin + (i % panels) * tile_m_;
    const Size col = i / panels * tile_n_;
    return {{row, min(row + tile_m_, rows.end)}, {col, min(col + tile_n_, n_)}};
  }

  /// Owner of the `step`-th shard in the order, 0 <= step < shards.
  TANDEM_DEVICE int owner(int step) const {
    const int n = rows_.shards;
    const int nodes = n / node_size_;
    const int my_node = me_ / node_size_;
    const int local = me_ % node_size_;
    switch (order_) {
      case TileOrder::kRing:
        return (me_ - step + n) % n;
      case TileOrder::kPeersFirst:
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
  TANDEM_DEVICE int pieces() const { return rows_.shards * rows_.splits; }
  TANDEM_DEVICE Size columns() const { return ceil_div(n_, tile_n_); }
  TANDEM_DEVICE Size panels_of(int i) const { return ceil_div(rows_of(i).size(), tile_m_); }

  /// Rows of the i-th piece in the order.
  TANDEM_DEVICE Range rows_of(int i) const {
    if (order_ == TileOrder::kRowMajor) return {0, rows_.rows};
    const int splits = rows_.splits;
    const int peers = rows_.shards - 1;
    if (order_ == TileOrder::kInterleaved && i >= splits) {
      const int j = i - splits;  // own shard is done: part 0 of every peer, then part 1, ...
      return rows_.part(owner(1 + j % peers), j / peers);
    }
    return rows_.part(owner(i / splits), i % splits);
  }

  RowPartition rows_;
  TileOrder order_;
  int me_;
  int node_size_;
  int tile_m_;
  int tile_n_;
  Size n_;
};

}  // namespace tandem
