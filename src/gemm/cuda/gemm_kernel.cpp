#include "gemm/cuda/gemm_kernel.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tandem/error.h"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x256;
extern const GemmKernel kBf16Tile128x256KxN;
extern const GemmKernel kBf16Tile128x128;
extern const GemmKernel kF16Tile128x256;
extern const GemmKernel kF16Tile128x256KxN;

namespace {

std::string describe(DType type, int tile_m, int tile_n, BLayout layout) {
  return fmt::format("{} {}x{}{}", name(type), tile_m, tile_n, layout == BLayout::kKxN ? " with B as KxN" : "");
}

}  // namespace

std::span<const GemmKernel* const> gemm_kernels() {
  static const std::array kernels{&kBf16Tile128x256, &kBf16Tile128x256KxN, &kBf16Tile128x128, &kF16Tile128x256,
                                  &kF16Tile128x256KxN};
  return kernels;
}

const GemmKernel& find_gemm_kernel(const Gemm& gemm) {
  std::string known;
  for (const GemmKernel* kernel : gemm_kernels()) {
    const bool same_tile = kernel->tile_m == gemm.tile_m && kernel->tile_n == gemm.tile_n;
    if (kernel->type == gemm.type && same_tile && kernel->b_layout == gemm.b_layout) return *kernel;
    known += (known.empty() ? "" : ", ") + describe(kernel->type, kernel->tile_m, kernel->tile_n, kernel->b_layout);
  }
  throw Unsupported(fmt::format("gemm: tiles of {} given, the GPU's kernels are {}",
                                describe(gemm.type, gemm.tile_m, gemm.tile_n, gemm.b_layout), known));
}

}  // namespace tandem::cuda
