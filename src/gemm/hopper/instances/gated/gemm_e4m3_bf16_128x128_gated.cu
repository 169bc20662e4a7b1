#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToBf16Gated128x128;
const GemmKernel kE4m3ToBf16Gated128x128 =
    FusedGemm<cutlass::float_e4m3_t, cutlass::bfloat16_t, 128, 128, 128, BLayout::kNxK, true>::description(
        DType::kE4M3, DType::kBF16);

}  // namespace tandem::cuda
