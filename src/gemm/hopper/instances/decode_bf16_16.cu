#include "gemm/hopper/decode_gemm.cuh"

namespace tandem::cuda {

extern const DecodeKernel kBf16Decode16;
const DecodeKernel kBf16Decode16 = DecodeGemm<cutlass::bfloat16_t, 16, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
