#include "gemm/hopper/groups/grouped_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16GatedGroups128x256;
const GemmKernel kBf16GatedGroups128x256 =
    GroupedGemm<cutlass::bfloat16_t, 128, 256, true>::description(DType::kBF16, DType::kBF16);

}  // namespace tandem::cuda
