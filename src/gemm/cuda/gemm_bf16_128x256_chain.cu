#include "gemm/cuda/hooked_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x256Chain;
const GemmKernel kBf16Tile128x256Chain = HookedGemm<cutlass::bfloat16_t, 128, 256, 64, true>::description(DType::kBF16);

}  // namespace tandem::cuda
