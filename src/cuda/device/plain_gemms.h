#pragma once
/// GEMMs without hooks on a CUDA stream.

#include <memory>

#include "gemm/hopper/host/cublas_lt.h"

namespace tandem::cuda {

/// Plain GEMMs, without hooks and in any order of tiles: by cuBLASLt where the machine has it. For one stream.
class PlainGemms {
 public:
  /// Whether it is plain and there is cuBLASLt with an algorithm for it and room for its workspace; may be called
  /// within a capture. Throws OutOfMemory where there is no room, and no kernel of the library's own for it either.
  bool takes(const Gemm& gemm);
  /// Enqueues what it takes.
  void run(const Gemm& gemm, cudaStream_t stream);

 private:
  bool load(const Gemm& gemm);

  std::unique_ptr<CublasLt> cublas_;
  bool missing_ = false;
  bool without_room_ = false;
};

}  // namespace tandem::cuda
