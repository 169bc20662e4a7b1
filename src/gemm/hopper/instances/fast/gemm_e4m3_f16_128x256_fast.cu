#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToF16Fast128x256;
const GemmKernel kE4m3ToF16Fast128x256 =
    FusedGemm<cutlass::float_e4m3_t, cutlass::half_t, 128, 256, 128, BLayout::kNxK, false, false, true>::description(
        DType::kE4M3, DType::kF16);

}  // namespace tandem::cuda
