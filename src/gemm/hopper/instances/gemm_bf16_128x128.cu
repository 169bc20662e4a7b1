#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x128;
const GemmKernel kBf16Tile128x128 =
    FusedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 128, 64>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
