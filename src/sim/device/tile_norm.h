#pragma once
/// Residual and RMS norm in the blocks of a simulated GEMM of few rows (GemmNorm). It moves the bytes of the GPUs'
/// kernel. There each sum of squares is its own flag; here a signal arrives with those of a tile.

#include <vector>

#include "gemm/contract/skinny.h"
#include "sim/device/role.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem::sim {

class TileNorm {
 public:
  /// `call` is the number of the call, counted from 1.
  TileNorm(Role& role, const Gemm& gemm, const GemmNorm& norm, Epoch call)
      : role_(role), gemm_(gemm), norm_(norm), squares_(static_cast<int>(gemm.n)), call_(call) {}

  /// Returns the normed tile of the complete `sums`, and stores the sums with the residual; empty in phantom mode.
  Buffer of(const GemmTile& tile, Buffer sums);

 private:
  Size row_bytes(const GemmTile& tile) const { return tile.cols.size() * size_of(gemm_.out_type); }
  int column_of(const GemmTile& tile) const { return static_cast<int>(tile.cols.begin / kSkinnyColumns); }
  /// Reports a read or a write of the tile's part of each row of an m x n matrix.
  void access(AccessKind kind, const void* matrix, const GemmTile& tile);
  void add_residual(const GemmTile& tile, Buffer& sums);
  void store_sums(const GemmTile& tile, const Buffer& sums);
  void give_squares(const GemmTile& tile, const Buffer& sums);
  /// Returns the mean squares of all rows; none in phantom mode.
  std::vector<float> take_squares(bool has_data);
  void scale(const GemmTile& tile, const std::vector<float>& squares, Buffer& sums);

  Role& role_;
  const Gemm& gemm_;
  const GemmNorm& norm_;
  const SkinnySquares squares_;
  const Epoch call_;
};

}  // namespace tandem::sim
