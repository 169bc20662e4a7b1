#pragma once
/// The table of kernels that were compiled for GPUs.

#include <string_view>
#include <vector>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// All registered kernels. They are loaded before the first launch, since a lazy load behind a spinning kernel
/// deadlocks.
std::vector<const detail::DeviceKernel*>& registered_kernels();

/// Adds a kernel to the table; `register_kernel` of tandem/advanced/cuda_kernel.cuh calls it.
void add_kernel(std::string_view name, const detail::DeviceKernel*& registered, const detail::DeviceKernel& usual);

/// Registers the kernels of all collectives and operators, once; any thread may call it. The backend only declares it;
/// a generated source defines it (cmake/GpuKernels.cmake).
void register_library_kernels();
/// Registers the profiled forms of those kernels, once, after the usual ones.
void register_profiled_library_kernels();

}  // namespace tandem::cuda
