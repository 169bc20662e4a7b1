#include "gemm/hopper/groups/few_rows_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kF16Groups64x128;
extern const GemmKernel kF16GatedGroups64x128;
const GemmKernel kF16Groups64x128 = FewRowsGroups<cutlass::half_t>::description(DType::kF16, DType::kF16, false);
const GemmKernel kF16GatedGroups64x128 = FewRowsGroups<cutlass::half_t>::description(DType::kF16, DType::kF16, true);

}  // namespace tandem::cuda
