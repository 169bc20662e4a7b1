#include "gemm/hopper/groups/grouped_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToBf16Groups128x192;
const GemmKernel kE4m3ToBf16Groups128x192 =
    GroupedGemm<cutlass::float_e4m3_t, 128, 192, false, cutlass::bfloat16_t>::description(DType::kE4M3, DType::kBF16);

}  // namespace tandem::cuda
