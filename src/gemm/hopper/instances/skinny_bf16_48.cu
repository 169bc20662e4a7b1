#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Skinny48;
const SkinnyKernel kBf16Skinny48 = SkinnyGemm<cutlass::bfloat16_t, 48, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
