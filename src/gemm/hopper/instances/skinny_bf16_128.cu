#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Skinny128;
const SkinnyKernel kBf16Skinny128 = SkinnyGemm<cutlass::bfloat16_t, 128, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
