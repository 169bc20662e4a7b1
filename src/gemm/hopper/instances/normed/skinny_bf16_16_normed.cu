#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Normed16;
const SkinnyKernel kBf16Normed16 = SkinnyGemm<cutlass::bfloat16_t, 16, 2, true>::description(DType::kBF16);

}  // namespace tandem::cuda
