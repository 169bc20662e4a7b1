#include "gemm/hopper/groups/grouped_gemm.cuh"

namespace tandem::cuda {

extern const GemmKernel kE4m3ToE4m3GatedGroups128x256;
const GemmKernel kE4m3ToE4m3GatedGroups128x256 =
    GroupedGemm<cutlass::float_e4m3_t, 128, 256, true, cutlass::float_e4m3_t>::description(DType::kE4M3, DType::kE4M3);

}  // namespace tandem::cuda
