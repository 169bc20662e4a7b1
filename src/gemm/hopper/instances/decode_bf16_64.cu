#include "gemm/hopper/decode_gemm.cuh"

namespace tandem::cuda {

extern const DecodeKernel kBf16Decode64;
const DecodeKernel kBf16Decode64 = DecodeGemm<cutlass::bfloat16_t, 64, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
