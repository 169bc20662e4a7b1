// The tensor cores' instructions have other widths than powers of two, too.
#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x192;
const GemmKernel kBf16Tile128x192 =
    FusedGemm<cutlass::bfloat16_t, cutlass::bfloat16_t, 128, 192, 64>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
