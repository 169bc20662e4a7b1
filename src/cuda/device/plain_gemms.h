#pragma once
/// Plain GEMMs on a CUDA stream.

#include <memory>

#include "gemm/hopper/host/cublas_lt.h"

namespace tandem::cuda {

/// Plain GEMMs of one stream, in any order of tiles. They use cuBLASLt if the machine has it.
class PlainGemms {
 public:
  /// Returns whether the GEMM is plain and cuBLASLt has an algorithm for it and room for its workspace. It may be
  /// called within a capture. Throws OutOfMemory if there is no room, and the library has no kernel of its own for it
  /// either.
  bool takes(const Gemm& gemm);
  /// Enqueues a GEMM that it takes.
  void run(const Gemm& gemm, cudaStream_t stream);

 private:
  bool load(const Gemm& gemm);

  std::unique_ptr<CublasLt> cublas_;
  bool missing_ = false;
  bool without_room_ = false;
};

}  // namespace tandem::cuda
