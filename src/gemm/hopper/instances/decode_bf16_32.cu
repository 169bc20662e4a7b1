#include "gemm/hopper/decode_gemm.cuh"

namespace tandem::cuda {

extern const DecodeKernel kBf16Decode32;
const DecodeKernel kBf16Decode32 = DecodeGemm<cutlass::bfloat16_t, 32, 2>::description(DType::kBF16);

}  // namespace tandem::cuda
