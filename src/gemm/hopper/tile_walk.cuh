#pragma once
/// The tiles of one block in their order. Clusters take the units of a TileTable one after the other, then their parts
/// of split units.

#include "gemm/contract/stream_k.h"

namespace tandem::cuda {

/// Steps of the mainloop. A step has the depth of a tile.
struct Steps {
  int first, count;
};

/// A tile of this block, or a part of its depth.
struct WalkedTile {
  const TableChunk* chunk;
  int number;   ///< index of the chunk in the table
  int row;      ///< first row in A and C
  int column;   ///< in tiles
  Steps steps;  ///< used if units may be split
  int place;    ///< see UnitPart
  int others;
  /// Returns whether the tile is empty and the block only helps its cluster.
  __device__ bool is_empty() const { return row >= chunk->end; }
  /// Returns whether another block completes it.
  __device__ bool gives() const { return others == UnitPart::kGives; }
};

/// Each role of a block walks separately.
template <class Table>
class TileWalk {
  static constexpr bool kIsStreamK = Table::kIsStreamK;

 public:
  __device__ explicit TileWalk(const Table& table)
      : table_(table),
        unit_(static_cast<int>(blockIdx.x) / table.cluster),
        step_(static_cast<int>(gridDim.x) / table.cluster) {
    if constexpr (kIsStreamK) {
      rank_ = static_cast<int>(blockIdx.x) % table.cluster;
      part_ = table.stream_k.begin[unit_];
      parts_end_ = table.stream_k.begin[unit_ + 1];
    }
  }

  __device__ bool is_over() const { return unit_ >= whole() && part_ == parts_end_; }
  __device__ bool is_last() const {
    const int next = unit_ < whole() ? unit_ + step_ : unit_;
    const int parts = parts_end_ - part_ - (unit_ < whole() ? 0 : 1);
    return next >= whole() && parts == 0;
  }
  __device__ void advance() {
    if (!kIsStreamK || unit_ < whole())
      unit_ += step_;
    else
      ++part_;
  }
  __device__ WalkedTile tile() {
    int unit = unit_;
    UnitPart part;
    if constexpr (kIsStreamK) {
      part.count = static_cast<std::int16_t>(table_.stream_k.depth);
      if (unit_ >= table_.stream_k.whole) {
        part = table_.stream_k.parts[part_];
        unit = table_.stream_k.whole + part.unit;
      }
    }
    const TablePlace place = place_of(table_, unit, rank(), chunk_);
    chunk_ = place.chunk;
    const TableChunk& chunk = table_.chunks[chunk_];
    return {&chunk,     chunk_,     chunk.begin + place.panel * table_.tile_m, place.column, {part.first, part.count},
            part.place, part.others};
  }

 private:
  __device__ int whole() const {
    if constexpr (kIsStreamK) return table_.stream_k.whole;
    return table_.units;
  }

  /// Returns the block's number in its cluster. Walks over many tiles divide once.
  __device__ int rank() const { return kIsStreamK ? rank_ : static_cast<int>(blockIdx.x) % table_.cluster; }

  const Table& table_;
  int unit_;
  int step_;
  int rank_ = 0;
  int chunk_ = 0;
  int part_ = 0;
  int parts_end_ = 0;
};

}  // namespace tandem::cuda
