#pragma once
/// The GPU forms of the library's kernels.

#include <vector>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// Everything that was registered, to be loaded before the first launch: a lazy load behind a spinning kernel
/// deadlocks.
std::vector<const detail::DeviceKernel*>& registered_kernels();

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
