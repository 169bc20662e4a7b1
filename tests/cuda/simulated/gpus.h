#pragma once
/// What tests ask of the simulated GPUs of their process.

#include <cstddef>
#include <string>

#include "cuda.h"

namespace tandem::test {

inline constexpr int kSimulatedGpus = 8;

/// The next call of that function of the driver, or of the library that loads kernels, fails like this, once.
void fail_next(const std::string& function, CUresult code = CUDA_ERROR_UNKNOWN);
/// Whether something has used the GPU in this process.
bool has_context(int device);
/// Memory that other processes can map, as an allocator with expandable segments gives it. Stays.
void* exportable_memory(int device, std::size_t bytes);

}  // namespace tandem::test
