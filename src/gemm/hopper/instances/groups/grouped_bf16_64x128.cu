#include "gemm/hopper/groups/few_rows_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kBf16Groups64x128;
extern const GemmKernel kBf16GatedGroups64x128;
const GemmKernel kBf16Groups64x128 = FewRowsGroups<cutlass::bfloat16_t>::description(DType::kBF16, DType::kBF16, false);
const GemmKernel kBf16GatedGroups64x128 =
    FewRowsGroups<cutlass::bfloat16_t>::description(DType::kBF16, DType::kBF16, true);

}  // namespace tandem::cuda
