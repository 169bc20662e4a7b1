#include "sim/device/tile_norm.h"

#include <cmath>
#include <cstring>

#include "sim/device/gemm_signals.h"

namespace tandem::sim {

Buffer TileNorm::of(const GemmTile& tile, Buffer sums) {
  add_residual(tile, sums);
  store_sums(tile, sums);
  give_squares(tile, sums);
  const std::vector<float> squares = take_squares(static_cast<bool>(sums));
  scale(tile, squares, sums);
  return sums;
}

void TileNorm::access(AccessKind kind, const void* matrix, const GemmTile& tile) {
  for (Size row = 0; role_.sim.seams.monitor != nullptr && row < gemm_.m; ++row)
    role_.report_access(
        kind, static_cast<const std::byte*>(matrix) + (row * gemm_.n + tile.cols.begin) * size_of(gemm_.out_type),
        row_bytes(tile), Site::here());
}

void TileNorm::add_residual(const GemmTile& tile, Buffer& sums) {
  if (norm_.residual == nullptr) return;
  access(AccessKind::kLoad, norm_.residual, tile);
  role_.move(role_.pe, role_.pe, gemm_.m * row_bytes(tile), Driver::kLoads);
  if (!sums) return;
  dispatch(gemm_.out_type, [&]<class T>() {
    T* const values = reinterpret_cast<T*>(sums.data());
    const T* const residual = static_cast<const T*>(norm_.residual);
    const Size width = tile.cols.size();
    for (Size i = 0; i < gemm_.m * width; ++i)
      values[i] = convert<T>(convert<float>(values[i]) +
                             convert<float>(residual[i / width * gemm_.n + tile.cols.begin + i % width]));
  });
}

void TileNorm::store_sums(const GemmTile& tile, const Buffer& sums) {
  if (norm_.sum == nullptr) return;
  access(AccessKind::kStore, norm_.sum, tile);
  if (!sums) return;
  for (Size row = 0; row < gemm_.m; ++row)
    std::memcpy(static_cast<std::byte*>(norm_.sum) + (row * gemm_.n + tile.cols.begin) * size_of(gemm_.out_type),
                sums.data() + row * row_bytes(tile), static_cast<std::size_t>(row_bytes(tile)));
}

void TileNorm::give_squares(const GemmTile& tile, const Buffer& sums) {
  const int column = column_of(tile);
  for (int row = 0; row < gemm_.m; ++row) {
    float* const place = norm_.squares + squares_.place(call_, row, column);
    role_.report_access(AccessKind::kStore, place, sizeof(float), Site::here());
    if (!sums) continue;
    *place = 0;
    dispatch(gemm_.out_type, [&]<class T>() {
      const T* const values = reinterpret_cast<const T*>(sums.data()) + row * tile.cols.size();
      for (Size i = 0; i < tile.cols.size(); ++i) *place += convert<float>(values[i]) * convert<float>(values[i]);
    });
  }
  send_gemm_signal(role_, {norm_.arrived + column, call_, SignalOp::kSet},
                   role_.engine().now() + role_.sim.costs.local_flag, Site::here());
}

std::vector<float> TileNorm::take_squares(bool has_data) {
  for (int column = 0; column < squares_.columns; ++column)
    await_gemm_signal(role_, norm_.arrived + column, call_, Site::here());
  const Size bytes = squares_.columns * Size{sizeof(float)};
  role_.move(role_.pe, role_.pe, gemm_.m * bytes, Driver::kLoads);
  std::vector<float> means;
  for (int row = 0; row < gemm_.m; ++row) {
    const float* const from = norm_.squares + squares_.place(call_, row, 0);
    role_.report_access(AccessKind::kLoad, from, bytes, Site::here());
    if (!has_data) continue;
    float total = 0;
    for (int column = 0; column < squares_.columns; ++column) total += from[column];
    means.push_back(total / static_cast<float>(gemm_.n));
  }
  return means;
}

void TileNorm::scale(const GemmTile& tile, const std::vector<float>& squares, Buffer& sums) {
  const auto vector = [&](const void* values) {
    if (values != nullptr)
      role_.report_access(AccessKind::kLoad,
                          static_cast<const std::byte*>(values) + tile.cols.begin * size_of(gemm_.out_type),
                          row_bytes(tile), Site::here());
  };
  vector(norm_.weight);
  vector(norm_.bias);
  if (!sums) return;
  dispatch(gemm_.out_type, [&]<class T>() {
    const T* const weight = static_cast<const T*>(norm_.weight) + tile.cols.begin;
    const T* const bias = norm_.bias == nullptr ? nullptr : static_cast<const T*>(norm_.bias) + tile.cols.begin;
    T* next = reinterpret_cast<T*>(sums.data());
    for (const float mean : squares) {
      const float factor = 1.0F / sqrtf(mean + norm_.epsilon);
      for (Size i = 0; i < tile.cols.size(); ++i, ++next) {
        const float y = convert<float>(*next) * factor * convert<float>(weight[i]);
        *next = convert<T>(bias == nullptr ? y : y + convert<float>(bias[i]));
      }
    }
  });
}

}  // namespace tandem::sim
