#pragma once
/// The compiled kernels of the fused GEMM, one source file each, and the table of them.

#include <span>

#include "base/cuda_names.h"
#include "tandem/advanced/gemm.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/record.h"

namespace tandem::cuda {

struct GemmLaunch {
  const Gemm* gemm = nullptr;
  const Context* context = nullptr;
  int sms = 0;
  /// Whether its blocks may start before the stream's previous kernel ends (programmatic dependent launch).
  bool early = false;
  cudaStream_t stream = nullptr;
  RecordArea record;  ///< where it records; without records it does not
};

struct GemmKernel {
  DType type = DType::kBF16;
  DType out_type = DType::kBF16;
  int tile_m = 0, tile_n = 0;
  BLayout b_layout = BLayout::kNxK;
  void (*launch)(const GemmLaunch& launch) = nullptr;
  /// Loads it on the current device, so that no launch has to.
  int (*load)() = nullptr;
  bool is_grouped = false;  ///< whether it computes the panels of groups
  bool gated = false;       ///< whether it is for the gated activations, or for the others
  bool quantises = false;   ///< whether it makes the scales of C's blocks (GemmScales::out)
  bool blocks = false;      ///< without groups: whether A and B may have scales of blocks (GemmScales::blocks)
  bool fast = false;        ///< whether the tensor cores add the whole depth (Gemm::fast_accumulation)
};

std::span<const GemmKernel* const> gemm_kernels();

/// Returns whether the library's own kernels can compute it as a plain GEMM.
bool has_gemm_kernel(const Gemm& gemm);

/// Returns the kernel for the GEMM's type, tile, layout and epilogue. Throws Unsupported with the existing ones.
const GemmKernel& find_gemm_kernel(const Gemm& gemm);

/// A kernel for products of few rows, limited by the time to read B: without gates, notifications or scales, B as NxK.
struct SkinnyKernel {
  DType type = DType::kBF16;  ///< type of A, B and C
  int rows = 0;               ///< largest number
  void (*launch)(const GemmLaunch& launch) = nullptr;
  int (*load)() = nullptr;
  bool normed = false;  ///< whether it is for GEMMs with GemmNorm, or for the others
};

std::span<const SkinnyKernel* const> skinny_kernels();

/// Returns the kernel for it on a GPU with `sms` SMs. Returns null if none can compute it, or if others are faster.
const SkinnyKernel* find_skinny_kernel(const Gemm& gemm, int sms);

}  // namespace tandem::cuda
