#include "gemm/hopper/groups/grouped_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kF16GatedGroups128x256;
const GemmKernel kF16GatedGroups128x256 =
    GroupedGemm<cutlass::half_t, 128, 256, true>::description(DType::kF16, DType::kF16);

}  // namespace tandem::cuda
