#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Skinny64;
const SkinnyKernel kBf16Skinny64 = SkinnyGemm<cutlass::bfloat16_t, 64, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
