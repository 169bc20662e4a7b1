#pragma once
/// Scales and bias of a thread's sums in a box of a tile, in the layout of TileBox.

#include "gemm/hopper/epilogue.cuh"
#include "gemm/hopper/tile_store_params.cuh"

namespace tandem::cuda {

template <class Bias, int kCols, bool Scaled>
class TileEpilogue {
 public:
  /// For thread `thread` of a warpgroup.
  __device__ TileEpilogue(const TileStoreParams<Bias>& params, int thread) : params_(params), thread_(thread) {}

  /// The scales of this thread's two rows.
  struct RowScales {
    float first = 1, second = 1;
  };
  __device__ RowScales row_scales(int row) const {
    if (!Scaled || params_.scales.a == nullptr) return {};
    const auto of_row = [&](int r) {
      return __ldg(params_.scales.a + (params_.scales.a_per_row ? min(r, params_.m - 1) : 0));
    };
    return {of_row(row), of_row(row + 8)};
  }
  /// `of_group` is the place of the first scale of the tile's B.
  template <class Place>
  __device__ void scale(float (&values)[kCols / 2], const RowScales& of_rows, int first_col, Place of_group) const {
    const auto of_col = [&](int col) {
      if (params_.scales.b == nullptr) return 1.0F;
      return __ldg(params_.scales.b + of_group + (params_.scales.b_per_column ? min(col, params_.n - 1) : 0));
    };
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
      const int col = first_col + j * 8 + thread_ % 4 * 2;
      const float first = of_col(col);
      const float second = of_col(col + 1);
      values[j * 4] *= of_rows.first * first;
      values[j * 4 + 1] *= of_rows.first * second;
      values[j * 4 + 2] *= of_rows.second * first;
      values[j * 4 + 3] *= of_rows.second * second;
    }
  }

  __device__ void add_bias(float (&values)[kCols / 2], int first_col) const {
    if (params_.bias == nullptr) return;
#pragma unroll
    for (int j = 0; j < kCols / 8; ++j) {
      const int col = first_col + j * 8 + thread_ % 4 * 2;
      if (col >= params_.n) break;
      const Pair pair = unpacked<Bias>(__ldg(reinterpret_cast<const unsigned*>(params_.bias + col)));
      values[j * 4] += pair.first;
      values[j * 4 + 1] += pair.second;
      values[j * 4 + 2] += pair.first;
      values[j * 4 + 3] += pair.second;
    }
  }
  __device__ static void scale_all(float (&values)[kCols / 2], float scale) {
#pragma unroll
    for (float& value : values) value *= scale;
  }

 private:
  const TileStoreParams<Bias>& params_;
  const int thread_;
};

}  // namespace tandem::cuda
