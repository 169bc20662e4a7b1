#include "gemm/hopper/groups/few_rows_gemm.cuh"

namespace tandem::cuda {

using Groups = FewRowsGroups<cutlass::float_e4m3_t, cutlass::bfloat16_t>;
extern const GemmKernel kE4m3ToBf16Groups32x128;
extern const GemmKernel kE4m3ToBf16GatedGroups32x128;
const GemmKernel kE4m3ToBf16Groups32x128 = Groups::description(DType::kE4M3, DType::kBF16, false);
const GemmKernel kE4m3ToBf16GatedGroups32x128 = Groups::description(DType::kE4M3, DType::kBF16, true);

}  // namespace tandem::cuda
