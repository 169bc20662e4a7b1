#pragma once
/// Where a GEMM's tiles go and who is told, as its launch works it out on the host.

#include "gemm/tile_table.h"

namespace tandem::cuda {

/// Where the first row of `owner`'s rows, which begin at row `begin` of C, is stored.
inline std::byte* destination_of(const Gemm& gemm, int owner, Size begin) {
  const Size row_bytes = gemm.n * size_of(gemm.out_type);
  const Size block_bytes = gemm.rows.shard_rows() * row_bytes;
  if (gemm.chain.begun != nullptr)
    return owner == gemm.me ? static_cast<std::byte*>(gemm.c) : gemm.chain.passed_on + owner * block_bytes;
  if (gemm.c_at_collector)
    return gemm.c_at_collector.on(gemm.collector(owner)) + gemm.block_at_collector(owner) * block_bytes;
  return static_cast<std::byte*>(gemm.c) + begin * row_bytes;
}

/// The word that grows by one for each tile of the piece; null: none.
inline Signal* notified_by(const Gemm& gemm, const TablePiece& piece) {
  if (gemm.chain.begun != nullptr && piece.owner != gemm.me) return gemm.chain.told + piece.slot;
  if (!gemm.notify.words) return nullptr;
  if (gemm.notify.local) return gemm.notify.words.local() + piece.slot;
  return gemm.notify.words.on(gemm.collector(piece.owner)) +
         gemm.rows.slot(gemm.block_at_collector(piece.owner), piece.slot % gemm.rows.splits);
}

}  // namespace tandem::cuda
