#include "gemm/hopper/groups/grouped_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToBf16GatedGroups128x256;
const GemmKernel kE4m3ToBf16GatedGroups128x256 =
    GroupedGemm<cutlass::float_e4m3_t, 128, 256, true, cutlass::bfloat16_t>::description(DType::kE4M3, DType::kBF16);

}  // namespace tandem::cuda
