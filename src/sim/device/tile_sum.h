#pragma once
/// The addition over all PEs in the blocks of a simulated GEMM of few rows (GemmSum). It moves the bytes of the GPUs'
/// kernel, in the same trips. There each word is its own flag; here a signal arrives with a PE's part of a tile.

#include "gemm/contract/skinny.h"
#include "sim/device/role.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem::sim {

class TileSum {
 public:
  TileSum(Role& role, const Gemm& gemm, const GemmSum& sum)
      : role_(role),
        gemm_(gemm),
        sum_(sum),
        team_(role.team),
        places_(static_cast<int>(gemm.n), team_.size),
        has_owners_(skinny_has_owners(gemm.m, team_.size)) {}

  /// Returns the sum over all PEs of their `product` of a tile with all rows; empty in phantom mode.
  Buffer of(const GemmTile& tile, Buffer product);
  /// Returns the number of the call that `of` served, counted from 1.
  Epoch call() const { return calls_[0] + 1; }

 private:
  int blocks() const { return static_cast<int>(ceil_div(gemm_.m, Size{kSkinnyBlock})); }
  Range rows_of(int block) const { return {Size{block} * kSkinnyBlock, min(gemm_.m, Size{block + 1} * kSkinnyBlock)}; }
  Size row_bytes(const GemmTile& tile) const { return tile.cols.size() * size_of(gemm_.out_type); }
  int tile_of(const GemmTile& tile, int block) const {
    return places_.tile(static_cast<int>(tile.cols.begin / kSkinnyColumns), block);
  }

  void begin_calls(const GemmTile& tile);
  void end_calls(const GemmTile& tile);
  void send_to_peers(const GemmTile& tile, const Buffer& part);
  void send(const GemmTile& tile, const Buffer& part, int to);
  /// Waits for the part of PE `from`, and returns it.
  Buffer receive(const GemmTile& tile, int from);
  Buffer add_up(const GemmTile& tile, const Buffer& own);

  Role& role_;
  const Gemm& gemm_;
  const GemmSum& sum_;
  const Team team_;
  const SkinnyExchange places_;
  const bool has_owners_;
  Epoch calls_[kSkinnyMost / kSkinnyBlock] = {};  // of each block of rows
};

}  // namespace tandem::sim
