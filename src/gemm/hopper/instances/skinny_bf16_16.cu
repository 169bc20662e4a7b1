#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Skinny16;
const SkinnyKernel kBf16Skinny16 = SkinnyGemm<cutlass::bfloat16_t, 16, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
