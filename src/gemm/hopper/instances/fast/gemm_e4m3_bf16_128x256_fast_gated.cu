#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToBf16GatedFast128x256;
const GemmKernel kE4m3ToBf16GatedFast128x256 =
    FusedGemm<cutlass::float_e4m3_t, cutlass::bfloat16_t, 128, 256, 128, BLayout::kNxK, true, false, true>::description(
        DType::kE4M3, DType::kBF16);

}  // namespace tandem::cuda
