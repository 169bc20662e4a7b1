#pragma once
/// The forms of kernels for worlds of several nodes.

#include <string_view>

#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// Returns the form of a kernel for worlds of several nodes; null if it has none.
const detail::DeviceKernel* find_nodes_form(const detail::DeviceKernel* usual);

/// Used by tandem/advanced/cuda_nodes_kernel.cuh, which nvcc compiles.
void add_nodes_kernel(std::string_view name, const detail::DeviceKernel* usual, const detail::DeviceKernel* form);

/// Registers these forms of the library's kernels, once, after the usual ones. A generated source defines it.
void register_nodes_library_kernels();

}  // namespace tandem::cuda
