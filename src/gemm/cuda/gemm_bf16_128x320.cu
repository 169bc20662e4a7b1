// The tensor cores' instructions of any width, not only of powers of two.
#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
#include "gemm/cuda/hooked_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x320;
const GemmKernel kBf16Tile128x320 =
    HookedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 320, 64>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
