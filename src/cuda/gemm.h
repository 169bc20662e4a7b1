#pragma once
/// The GEMM with hooks on a CUDA stream.

#include <memory>

#include "gemm/cuda/cublas_lt.h"
#include "gemm/cuda/gemm_kernel.h"

namespace tandem::cuda {

/// Enqueues it. Throws InvalidArgument or Unsupported naming the field where the GPU's kernels cannot do it.
void run_gemm(const Gemm& gemm, const Context& context, int sm_count, bool early, cudaStream_t stream);

/// Plain GEMMs, without hooks and in any order of tiles: by cuBLASLt where the machine has it. For one stream.
class PlainGemms {
 public:
  /// Enqueues it, within a capture too; false where it is not plain or there is no cuBLASLt.
  bool run(const Gemm& gemm, cudaStream_t stream);

 private:
  std::unique_ptr<CublasLt> cublas_;
  bool missing_ = false;
};

/// Makes all its kernels known to those who load kernels.
void register_gemms();

}  // namespace tandem::cuda
