#pragma once
/// The destinations of a GEMM's tiles and their signals, computed by the host at launch.

#include "gemm/contract/tile_table.h"

namespace tandem::cuda {

/// Returns the place of the first of `owner`'s rows, which start at row `begin` of C.
inline std::byte* destination_of(const Gemm& gemm, int owner, Size begin) {
  const Size row_bytes = columns_after(gemm.activation, gemm.n) * size_of(gemm.out_type);
  const Size block_bytes = gemm.rows.shard_rows() * row_bytes;
  if (const GemmRing* const ring = gemm.destination.ring())
    return owner == gemm.me ? static_cast<std::byte*>(ring->c) : ring->forwarded + owner * block_bytes;
  if (const GemmScatter* const scatter = gemm.destination.scatter())
    return scatter->blocks.on(gemm.collector(owner)) + gemm.block_at_collector(owner) * block_bytes;
  return static_cast<std::byte*>(gemm.destination.c()) + begin * row_bytes;
}

/// Returns the word that grows by one for each tile of the chunk, or null.
inline Signal* notified_by(const Gemm& gemm, const TableChunk& chunk) {
  const auto at_collector = [&](const Signals& words) {
    return words.on(gemm.collector(chunk.owner)) +
           gemm.rows.slot(gemm.block_at_collector(chunk.owner), chunk.slot % gemm.rows.splits);
  };
  if (const GemmRing* const ring = gemm.destination.ring()) {
    if (chunk.owner != gemm.me) return ring->forwarded_tiles + chunk.slot;
    return ring->notify ? ring->notify.local() + chunk.slot : nullptr;
  }
  if (const GemmScatter* const scatter = gemm.destination.scatter())
    return scatter->notify ? at_collector(scatter->notify) : nullptr;
  const GemmLocal* const local = gemm.destination.local();
  if (local == nullptr || !local->notify.words) return nullptr;
  return local->notify.local ? local->notify.words.local() + chunk.slot : at_collector(local->notify.words);
}

/// With a GemmBroadcast: a PE's copy of all tiles, and the word there that grows by one for each tile. Null: none.
struct CopyOfTiles {
  std::byte* to = nullptr;
  Signal* word = nullptr;
};

/// Returns the i-th copy of the node: the next PE's first, the own one last.
inline CopyOfTiles copy_of_tiles(const Gemm& gemm, const GemmBroadcast& all, int i) {
  const int block = gemm.me % gemm.node_size;
  const int pe = gemm.me - block + (block + 1 + i) % gemm.node_size;
  std::byte* const to = all.blocks.on(pe) + block * gemm.m * gemm.n * size_of(gemm.out_type);
  return {to, all.notify ? all.notify.on(pe) + block : nullptr};
}

}  // namespace tandem::cuda
