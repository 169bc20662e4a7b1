#pragma once
/// The GEMM with hooks on a CUDA stream.

#include "gemm/hopper/host/gemm_kernel.h"

namespace tandem::cuda {

/// Throws Unsupported where the current GPU has no kernel with hooks of these types, layout and tile.
void check_hooked_gemm(const Gemm& gemm);
/// Throws InvalidArgument or Unsupported naming the field that no kernel of a GPU with `sm_count` SMs can do.
void check_gemm(const Gemm& gemm, int sm_count);

/// The kernel that streams B for few rows, where the current GPU has one and it is the fastest; else null.
const DecodeKernel* decode_kernel(const Gemm& gemm, int sm_count);

/// Whether the library's own kernels can do it on the current GPU where it has no hooks.
bool has_own_kernel(const Gemm& gemm);

/// Makes all its kernels known to those who load kernels.
void register_gemms();

}  // namespace tandem::cuda
