#pragma once
/// The tiles of one block, in their order: clusters take the units of a TileTable in turn.

#include "gemm/tile_table.h"

namespace tandem::cuda {

/// A tile of this block.
struct WalkedTile {
  const TablePiece* piece;
  int number;  ///< of the piece in the table
  int row;     ///< of A and C, where it begins
  int column;  ///< counted in tiles
  /// Nothing lies in it: the block only helps its cluster.
  __device__ bool is_empty() const { return row >= piece->end; }
};

/// Each role of a block goes through it by itself.
class TileWalk {
 public:
  __device__ explicit TileWalk(const TileTable& table)
      : table_(table),
        unit_(static_cast<int>(blockIdx.x) / table.cluster),
        step_(static_cast<int>(gridDim.x) / table.cluster) {}

  __device__ bool is_over() const { return unit_ >= table_.units; }
  __device__ bool is_last() const { return unit_ + step_ >= table_.units; }
  __device__ void advance() { unit_ += step_; }
  __device__ WalkedTile tile() {
    const TablePlace place = place_of(table_, unit_, static_cast<int>(blockIdx.x) % table_.cluster, piece_);
    piece_ = place.piece;
    const TablePiece& piece = table_.pieces[piece_];
    return {&piece, piece_, piece.begin + place.panel * table_.tile_m, place.column};
  }

 private:
  const TileTable& table_;
  int unit_;
  int step_;
  int piece_ = 0;
};

}  // namespace tandem::cuda
