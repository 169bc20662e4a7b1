#include "gemm/hopper/decode_gemm.cuh"

namespace tandem::cuda {

extern const DecodeKernel kBf16Decode48;
const DecodeKernel kBf16Decode48 = DecodeGemm<cutlass::bfloat16_t, 48, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
