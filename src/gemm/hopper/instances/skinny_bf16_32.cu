#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Skinny32;
const SkinnyKernel kBf16Skinny32 = SkinnyGemm<cutlass::bfloat16_t, 32, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
