#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x256KxN;
const GemmKernel kBf16Tile128x256KxN =
    FusedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 256, 64, BLayout::kKxN>::description(DType::kBF16,
                                                                                                  DType::kBF16);

}  // namespace tandem::cuda
