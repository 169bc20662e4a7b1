#include "gemm/hopper/fused_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToE4m3Tile128x128;
const GemmKernel kE4m3ToE4m3Tile128x128 =
    FusedGemm<cutlass::float_e4m3_t, cutlass::float_e4m3_t, 128, 128, 128>::description(DType::kE4M3, DType::kE4M3);

}  // namespace tandem::cuda
