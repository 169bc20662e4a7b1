#include "gemm/hopper/groups/grouped_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kF16Groups128x256;
const GemmKernel kF16Groups128x256 = GroupedGemm<cutlass::half_t, 128, 256>::description(DType::kF16, DType::kF16);

}  // namespace tandem::cuda
