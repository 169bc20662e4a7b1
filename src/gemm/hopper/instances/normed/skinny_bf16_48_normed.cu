#include "gemm/hopper/skinny_gemm.cuh"

namespace tandem::cuda {

extern const SkinnyKernel kBf16Normed48;
const SkinnyKernel kBf16Normed48 = SkinnyGemm<cutlass::bfloat16_t, 48, 2, true>::description(DType::kBF16);

}  // namespace tandem::cuda
