#pragma once
/// The forms of kernels that record what they do, and how they are found.

#include <map>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// The recorded form of each kernel that has one; looked up, never iterated for anything that has an order.
std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& recorded_kernels();

/// Registers the recorded forms of the collectives' kernels, for the types that are compiled. After
/// register_collectives; may be called again, from any thread.
void register_recorded_collectives();

// One for each .cu file.
void register_recorded_all_reduce();
void register_recorded_reduce();
void register_recorded_move();

}  // namespace tandem::cuda
