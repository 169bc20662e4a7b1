#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x256;
const GemmKernel kBf16Tile128x256 =
    FusedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 256, 64>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
