#include "cuda/device/gather_rows.h"
#include "cuda/driver/error.h"

namespace tandem::cuda {

namespace {

struct Rows {
  const GemmPanel* panels;
  const std::int32_t* panel_count;
  const std::int32_t* index;
  const uint4* from;
  uint4* to;
  int of_panel;  // rows
  int of_a;      // rows
  Size vectors;  // of a row
  const float* scales;
  float* scales_to;
  int scales_of_row;
};

/// A warp copies a row at a time. Loads are in flight together.
__global__ void copy_rows(const Rows rows) {
  constexpr int kTogether = 4, kWarp = 32;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Size warps = Size{gridDim.x} * (blockDim.x / kWarp);
  const Size first = Size{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const Size all = Size{*rows.panel_count} * rows.of_panel;
  for (Size i = first; i < all; i += warps) {
    const GemmPanel panel = rows.panels[i / rows.of_panel];
    const int within = static_cast<int>(i % rows.of_panel);
    if (within >= panel.rows) continue;
    const Size row = panel.row + within;
    const int source = rows.index[row];
    const bool is_there = source >= 0 && source < rows.of_a;
    const uint4* const from = rows.from + source * rows.vectors;
    uint4* const to = rows.to + row * rows.vectors;
    for (Size v = lane; v < rows.vectors; v += kTogether * kWarp) {
      uint4 values[kTogether] = {};
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
        if (is_there && v + j * kWarp < rows.vectors) values[j] = __ldg(from + v + j * kWarp);
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
        if (v + j * kWarp < rows.vectors) to[v + j * kWarp] = values[j];
    }
    for (int v = lane; v < rows.scales_of_row; v += kWarp)
      rows.scales_to[row * rows.scales_of_row + v] =
          is_there ? __ldg(rows.scales + Size{source} * rows.scales_of_row + v) : 1;
  }
}

}  // namespace

Gemm gather_rows(const Gemm& gemm, int sms, cudaStream_t stream) {
  constexpr int kThreads = 256, kBlocksPerSm = 8;
  const GemmGroups& groups = gemm.groups;
  const Size scales_of_row = gemm.scales.a != nullptr ? gemm.scales.of_row(gemm.k) : 0;
  auto* const scales_to = reinterpret_cast<float*>(static_cast<std::byte*>(groups.gathered) + gathered_scales(gemm));
  const Rows rows{groups.panels,
                  groups.panel_count,
                  groups.a_rows,
                  static_cast<const uint4*>(gemm.a),
                  static_cast<uint4*>(groups.gathered),
                  gemm.tile_m,
                  static_cast<int>(groups.rows_of_a),
                  gemm.k * size_of(gemm.type) / Size{sizeof(uint4)},
                  gemm.scales.a,
                  scales_to,
                  static_cast<int>(scales_of_row)};
  copy_rows<<<static_cast<unsigned>(sms * kBlocksPerSm), kThreads, 0, stream>>>(rows);
  check(cudaGetLastError(), "gemm: gathering rows");
  Gemm gathered = gemm;
  gathered.a = groups.gathered;
  gathered.groups.a_rows = nullptr;
  if (scales_of_row > 0) gathered.scales.a = scales_to;
  return gathered;
}

int load_gather_rows() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &copy_rows), "loading a kernel");
  return 1;
}

}  // namespace tandem::cuda
