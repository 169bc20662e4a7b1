#pragma once
/// The fused GEMM on a CUDA stream.

#include "gemm/hopper/host/gemm_kernel.h"

namespace tandem::cuda {

/// Throws Unsupported if the current GPU has no kernel of a fused GEMM of these types, layout and tile.
void check_fused_gemm(const Gemm& gemm);
/// Throws InvalidArgument or Unsupported with the field that no kernel of a GPU with `sm_count` SMs supports.
void check_gemm(const Gemm& gemm, int sm_count);

/// Returns the kernel that streams B for few rows, if the current GPU has one and it is the fastest; else null.
const SkinnyKernel* skinny_kernel(const Gemm& gemm, int sm_count);

/// Returns whether the library's own kernels can compute it as a plain GEMM on the current GPU.
bool has_own_kernel(const Gemm& gemm);

/// Registers all its kernels for loading.
void register_gemms();

}  // namespace tandem::cuda
