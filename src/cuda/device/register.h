#pragma once
/// The GPU forms of the library's kernels.

#include <string_view>
#include <vector>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// Everything that was registered, to be loaded before the first launch: a lazy load behind a spinning kernel
/// deadlocks.
std::vector<const detail::DeviceKernel*>& registered_kernels();

/// Of tandem/advanced/cuda_kernel.cuh, which is for nvcc.
void add_kernel(std::string_view name, const detail::DeviceKernel*& registered, const detail::DeviceKernel& usual);

// One for each .cu file.
void register_all_reduce();
void register_all_reduce_steps();
void register_reduce();
void register_move();
void register_copies();
void register_operator_steps();
void register_operators();

/// Makes all collectives' and operators' kernels launchable. May be called again, from any thread.
void register_collectives();

}  // namespace tandem::cuda
