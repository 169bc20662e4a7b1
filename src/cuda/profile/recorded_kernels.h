#pragma once
/// The forms of kernels that record what they do, and how they are found.

#include <map>
#include <string_view>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// The recorded form of each kernel that has one; looked up, never iterated for anything that has an order.
std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& recorded_kernels();

/// Of tandem/advanced/cuda_recorded_kernel.cuh, which is for nvcc.
void add_recorded_kernel(std::string_view name, const detail::DeviceKernel* usual,
                         const detail::DeviceKernel& recorded);

}  // namespace tandem::cuda
