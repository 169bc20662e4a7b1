#include "gemm/hopper/groups/few_rows_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToE4m3GatedGroups32x256;
const GemmKernel kE4m3ToE4m3GatedGroups32x256 =
    FewRowsGroups<cutlass::float_e4m3_t>::description(DType::kE4M3, DType::kE4M3, true);

}  // namespace tandem::cuda
