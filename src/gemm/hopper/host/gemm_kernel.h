#pragma once
/// The compiled forms of the GEMM with hooks, one source file each, and the table in which they are found.

#include <cuda_runtime.h>

#include <span>

#include "tandem/advanced/gemm.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/record.h"

namespace tandem::cuda {

struct GemmLaunch {
  const Gemm* gemm = nullptr;
  const Context* context = nullptr;
  int sms = 0;
  /// Its blocks may take their places before the stream's previous kernel ends (programmatic dependent launch).
  bool early = false;
  cudaStream_t stream = nullptr;
  RecordArea record;  ///< where it is recorded; without records: not
};

struct GemmKernel {
  DType type = DType::kBF16;
  DType out_type = DType::kBF16;
  int tile_m = 0, tile_n = 0;
  BLayout b_layout = BLayout::kNxK;
  void (*launch)(const GemmLaunch& launch) = nullptr;
  /// Loads it on the current device, so that no launch has to.
  int (*load)() = nullptr;
};

std::span<const GemmKernel* const> gemm_kernels();

/// Whether the library's own kernels can do it where it has no hooks.
bool has_gemm_kernel(const Gemm& gemm);

/// The kernel of the GEMM's type, tile and layout that knows what is done with the sums; throws Unsupported naming
/// those that there are.
const GemmKernel& find_gemm_kernel(const Gemm& gemm);

/// A kernel for products of few rows, as fast as B comes from memory: without hooks or scales, B as NxK.
struct DecodeKernel {
  DType type = DType::kBF16;  ///< of A, B and C
  int rows = 0;               ///< at most
  void (*launch)(const GemmLaunch& launch) = nullptr;
  int (*load)() = nullptr;
};

std::span<const DecodeKernel* const> decode_kernels();

/// The one for it on a GPU with `sms` SMs; null: none can do it, or others are faster.
const DecodeKernel* find_decode_kernel(const Gemm& gemm, int sms);

}  // namespace tandem::cuda
