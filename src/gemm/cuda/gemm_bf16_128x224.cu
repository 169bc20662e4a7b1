#include "gemm/cuda/hooked_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x224;
const GemmKernel kBf16Tile128x224 =
    HookedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 224, 64>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
