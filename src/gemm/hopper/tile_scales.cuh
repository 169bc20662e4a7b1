#pragma once
/// The scales of a tile's rows and columns, in shared memory. A warp of its own loads them while the tile is computed.
/// Computing threads have no registers to load them early, and would wait for the L2 cache if they loaded them late.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/tile_store_params.cuh"

namespace tandem::cuda {

/// For tiles without scales.
struct NoTileScales {
  __device__ void prepare() {}
  struct Reader {
    __device__ explicit Reader(NoTileScales&) {}
    __device__ int begin(int) const { return 0; }
    template <int Count>
    __device__ void scale(float (&)[Count], int, int, int) const {}
    __device__ void end() {}
  };
};

/// `Readers` warps read the scales of a tile.
template <int TileM, int TileN, int Readers>
class TileScales {
 public:
  /// Called by one thread, before a barrier of the block.
  __device__ void prepare() {
    ready_.init(1);
    free_.init(Readers);
  }

  /// Loads the scales of one tile after the other, by one warp. It waits for no gate: gates are for rows of A, and all
  /// scales are there when the kernel before has ended. Place is the place of the first scale of the tile's B.
  class Loader {
   public:
    __device__ Loader(TileScales& to, const GemmScales& scales, int m, int n)
        : to_(to), scales_(scales), m_(m), n_(n), lane_(static_cast<int>(threadIdx.x) % 32) {}

    template <class Tile, class Place>
    __device__ void load(const Tile& tile, Place of_group) {
      float rows[TileM / 32], columns[TileN / 32];
#pragma unroll
      for (int i = 0; i < TileM / 32; ++i) rows[i] = of_row(tile.row + i * 32 + lane_);
#pragma unroll
      for (int i = 0; i < TileN / 32; ++i) columns[i] = of_column(of_group, tile.column * TileN + i * 32 + lane_);
      to_.free_.wait(phase_ ^ 1);
#pragma unroll
      for (int i = 0; i < TileM / 32; ++i) to_.rows_[i * 32 + lane_] = rows[i];
#pragma unroll
      for (int i = 0; i < TileN / 32; ++i) to_.columns_[i * 32 + lane_] = columns[i];
      __syncwarp();
      if (lane_ == 0) to_.ready_.arrive();
      phase_ ^= 1;
    }

   private:
    // Plain loads: `__ldg` may be moved before the wait for the kernel before.
    __device__ float of_row(int row) const {
      if (scales_.a == nullptr) return 1;
      return scales_.a[scales_.a_per_row ? min(row, m_ - 1) : 0];
    }
    template <class Place>
    __device__ float of_column(Place of_group, int column) const {
      if (scales_.b == nullptr) return 1;
      return scales_.b[of_group + (scales_.b_per_column ? min(column, n_ - 1) : 0)];
    }

    TileScales& to_;
    const GemmScales& scales_;
    const int m_, n_, lane_;
    unsigned phase_ = 0;
  };

  /// The scales of a thread's two rows.
  struct OfRows {
    float first, second;
  };

  /// Reads the scales of one tile after the other. All threads of a warp take part.
  class Reader {
   public:
    __device__ explicit Reader(TileScales& from) : from_(from) {}

    /// Waits for a tile's scales, and returns those of row `row` of the tile and of the eighth row below it.
    __device__ OfRows begin(int row) const {
      from_.ready_.wait(phase_);
      return {from_.rows_[row], from_.rows_[row + 8]};
    }
    /// Multiplies a thread's sums of columns from `column` of the tile on, in the layout of TileBox.
    template <int Count>
    __device__ void scale(float (&values)[Count], const OfRows& rows, int column, int thread) const {
#pragma unroll
      for (int j = 0; j < Count / 4; ++j) {
        const float2 of = *reinterpret_cast<const float2*>(&from_.columns_[column + j * 8 + thread % 4 * 2]);
        values[j * 4] *= rows.first * of.x;
        values[j * 4 + 1] *= rows.first * of.y;
        values[j * 4 + 2] *= rows.second * of.x;
        values[j * 4 + 3] *= rows.second * of.y;
      }
    }
    /// Gives the place to the next tile's scales.
    __device__ void end() {
      __syncwarp();
      if (threadIdx.x % 32 == 0) from_.free_.arrive();
      phase_ ^= 1;
    }

   private:
    TileScales& from_;
    unsigned phase_ = 0;
  };

 private:
  alignas(8) float columns_[TileN];
  float rows_[TileM];
  cutlass::arch::ClusterBarrier ready_, free_;
};

}  // namespace tandem::cuda
