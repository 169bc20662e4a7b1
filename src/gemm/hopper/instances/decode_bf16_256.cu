#include "gemm/hopper/decode_gemm.cuh"

namespace tandem::cuda {

extern const DecodeKernel kBf16Decode256;
const DecodeKernel kBf16Decode256 = DecodeGemm<cutlass::bfloat16_t, 256, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
