#include "gemm/cuda/hooked_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kF16Tile128x128;
const GemmKernel kF16Tile128x128 = HookedGemm<cutlass::half_t, 128, 128, 64>::description(DType::kF16);

}  // namespace tandem::cuda
