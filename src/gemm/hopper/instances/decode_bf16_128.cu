#include "gemm/hopper/decode_gemm.cuh"

namespace tandem::cuda {

extern const DecodeKernel kBf16Decode128;
const DecodeKernel kBf16Decode128 = DecodeGemm<cutlass::bfloat16_t, 128, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
