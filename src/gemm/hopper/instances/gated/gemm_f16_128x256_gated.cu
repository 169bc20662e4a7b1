#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kF16Gated128x256;
const GemmKernel kF16Gated128x256 =
    FusedGemm<cutlass::half_t, cutlass::half_t, 128, 256, 64, BLayout::kNxK, true>::description(DType::kF16,
                                                                                                DType::kF16);

}  // namespace tandem::cuda
