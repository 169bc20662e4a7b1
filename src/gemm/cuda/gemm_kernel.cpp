#include "gemm/cuda/gemm_kernel.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tandem/error.h"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x256;
extern const GemmKernel kBf16Tile128x256Chain;
extern const GemmKernel kBf16Tile128x128;
extern const GemmKernel kF16Tile128x256;

std::span<const GemmKernel* const> gemm_kernels() {
  static const std::array kernels{&kBf16Tile128x256, &kBf16Tile128x256Chain, &kBf16Tile128x128, &kF16Tile128x256};
  return kernels;
}

const GemmKernel& find_gemm_kernel(DType type, int tile_m, int tile_n, bool chain) {
  std::string known;
  for (const GemmKernel* kernel : gemm_kernels()) {
    const bool fits = kernel->type == type && kernel->tile_m == tile_m && kernel->tile_n == tile_n;
    if (fits && (kernel->adds || !chain)) return *kernel;
    known += fmt::format("{}{} {}x{}{}", known.empty() ? "" : ", ", name(kernel->type), kernel->tile_m, kernel->tile_n,
                         kernel->adds ? "" : " (without a chain)");
  }
  throw Unsupported(
      fmt::format("gemm: {} with tiles of {}x{} given, the GPU's kernels are {}", name(type), tile_m, tile_n, known));
}

}  // namespace tandem::cuda
