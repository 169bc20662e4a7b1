#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kF16Tile128x256KxN;
const GemmKernel kF16Tile128x256KxN =
    FusedGemm<cutlass::half_t, cutlass::half_t, 128, 256, 64, BLayout::kKxN>::description(DType::kF16, DType::kF16);

}  // namespace tandem::cuda
