#pragma once
/// The way of a tile of few rows with a gated activation into an fp8 C. A tile has 128 columns of C, which share a
/// scale in each row. Both warpgroups find it together.

#include "gemm/hopper/groups/few_rows_tiles.cuh"

namespace tandem::cuda {

/// A warpgroup has two slabs: 64 columns of B each, and 32 columns of C. Its second slab is 128 columns of B behind.
class FewRowsQuantised : public FewRowsTiles<FewRowsQuantised, cutlass::bfloat16_t, 32, 2 * 32 * 32> {
  using Tiles = FewRowsTiles<FewRowsQuantised, cutlass::bfloat16_t, 32, 2 * 32 * 32>;
  static constexpr int kSlabs = 2;
  static constexpr int kSlabColumns = 32;         // of C, and bytes of a row in the slot
  static constexpr int kSums = Tiles::kRows / 2;  // of a thread in a slab
  static constexpr int kValues = kSums / 2;       // of C
  static constexpr int kWarps = 8;                // of both warpgroups
  static constexpr int kSlabBytes = Tiles::kRows * kSlabColumns;

 public:
  static constexpr int kColumns = 256;  ///< of B in a tile
  struct Storage : Tiles::Slots {
    float greatest[2][kWarps][Tiles::kRows];  ///< of neighbouring tiles
  };

  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    return tile_store_params<cutlass::bfloat16_t>(gemm, table, context, kBoxRows, kSlabColumns);
  }

  __device__ FewRowsQuantised(const Params& params, Storage& storage, int group, int thread)
      : Tiles(params, storage, group, thread), storage_(storage) {}

  template <class Sums>
  __device__ void write(const PanelTile& tile, const Sums& sums, bool) {
    float values[kSlabs][kValues];
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      float of_slab[kSums];
#pragma unroll
      for (int i = 0; i < kSums; ++i) of_slab[i] = sums(slab * kSums + i);
      scale(tile, tile.column * kColumns + (slab * 2 + group_) * 2 * kSlabColumns, of_slab);
      gate_few_rows(params_.activation, of_slab, values[slab]);
    }
    const float inverse = 1.0F / scale_of_row(tile, values);
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      const float of_value = __shfl_sync(~0U, inverse, row_of(i));
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) values[slab][i] *= of_value;
    }
    leave([&] {
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) put(slab, values[slab]);
    });
  }

  /// Enqueues the stores of the eight rows from `row` on.
  __device__ void store_rows(const PanelTile& tile, int row) const {
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab)
      store_box(&params_.c[0], slot() + static_cast<std::uint32_t>(slab * kSlabBytes + row * kSlabColumns),
                column_of(tile, slab), tile.row + row);
  }

 private:
  /// Returns the first column of C of a slab.
  __device__ int column_of(const PanelTile& tile, int slab) const {
    return tile.column * kColumns / 2 + (slab * 2 + group_) * kSlabColumns;
  }
  /// Returns the row of a thread's i-th value, within the tile.
  __device__ int row_of(int i) const { return i / 2 * 8 + thread_ % 4 * 2 + i % 2; }

  /// Returns the scale of row `lane`, which the first warp stores. All threads of both warpgroups take part.
  __device__ float scale_of_row(const PanelTile& tile, const float (&values)[kSlabs][kValues]) {
    auto& greatest = storage_.greatest[tiles_ % 2];
    const int lane = thread_ % 32;
    const int warp = group_ * (kWarps / 2) + thread_ / 32;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      float most = 0;
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
        if (column_of(tile, slab) + thread_ / 32 * 8 + lane / 4 < params_.n / 2)
          most = fmaxf(most, fabsf(values[slab][i]));
      for (const int step : {4, 8, 16}) most = fmaxf(most, __shfl_xor_sync(~0U, most, step));
      if (lane < 4) greatest[warp][row_of(i)] = most;
    }
    named_barrier(kBarrier, 2 * 128);
    // The next tile has the other half of the memory. The barrier of that tile orders these reads before the tile after
    // it.
    float most = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) most = fmaxf(most, greatest[i][lane]);
    const float scale = scale_of_block(most);
    const auto blocks = static_cast<int>(scale_blocks(params_.n / 2));
    if (warp == 0 && lane < tile.rows) params_.scales.out[Size{tile.row + lane} * blocks + tile.column] = scale;
    return scale;
  }

  /// Writes a slab's values. The 16-byte piece p of row r is at place p ^ (r / 4 % 2).
  __device__ void put(int slab, const float (&values)[kValues]) const {
    const int warp = thread_ / 32;
#pragma unroll
    for (int i = 0; i < kValues; i += 2) {
      const std::uint32_t pair = packed<cutlass::float_e4m3_t>(values[i], values[i + 1]);
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int row = row_of(i + odd);
        const int at =
            slab * kSlabBytes + row * kSlabColumns + (warp / 2 ^ row / 4 % 2) * 16 + warp % 2 * 8 + thread_ % 32 / 4;
        store_byte(slot() + static_cast<std::uint32_t>(at), pair >> 8 * odd);
      }
    }
  }

  static constexpr int kBarrier = 8;  // CUTLASS uses the barriers below

  Storage& storage_;
};

}  // namespace tandem::cuda
