#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Normed64;
const SkinnyKernel kBf16Normed64 = SkinnyGemm<cutlass::bfloat16_t, 64, 2, true>::description(DType::kBF16);

}  // namespace tandem::cuda
