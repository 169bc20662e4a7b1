#pragma once
/// The GEMM with hooks on a CUDA stream.

#include "gemm/cuda/gemm_kernel.h"

namespace tandem::cuda {

/// Enqueues it. Throws InvalidArgument or Unsupported naming the field where the GPU's kernels cannot do it.
void run_gemm(const Gemm& gemm, const Context& context, int sm_count, cudaStream_t stream);

/// Makes all its kernels known to those who load kernels.
void register_gemms();

}  // namespace tandem::cuda
