#pragma once
/// The recording variants of kernels.

#include <map>
#include <string_view>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// Returns the recording variant of each kernel that has one. It is only looked up, because its iteration order is
/// arbitrary.
std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& profiled_kernels();

/// Used by tandem/advanced/cuda_profiled_kernel.cuh, which nvcc compiles.
void add_profiled_kernel(std::string_view name, const detail::DeviceKernel* usual,
                         const detail::DeviceKernel& recorded);

}  // namespace tandem::cuda
