#include "gemm/hopper/hooked_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x128;
const GemmKernel kBf16Tile128x128 =
    HookedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 128, 64>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
