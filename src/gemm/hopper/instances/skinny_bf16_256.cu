#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Skinny256;
const SkinnyKernel kBf16Skinny256 = SkinnyGemm<cutlass::bfloat16_t, 256, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
