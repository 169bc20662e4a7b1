#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Normed32;
const SkinnyKernel kBf16Normed32 = SkinnyGemm<cutlass::bfloat16_t, 32, 2, true>::description(DType::kBF16);

}  // namespace tandem::cuda
