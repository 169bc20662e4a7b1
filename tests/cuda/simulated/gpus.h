#pragma once
/// The tests' access to the simulated GPUs of their process.

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/simulated/names.h"

namespace tandem::test {

inline constexpr int kSimulatedGpus = 8;

/// The next call of that function of the driver or the runtime, or of the library that loads kernels, fails like this,
/// once. The runtime's codes are those numbers too.
void fail_next(const std::string& function, CUresult code = CUDA_ERROR_UNKNOWN);
/// Returns the result that a test wants for a call of that function. The simulated functions ask for it.
CUresult failure_of(const std::string& function);
/// As if a call of this thread had failed some time before, which cudaGetLastError says.
void leave_error(cudaError_t code);
/// How cudaLaunchKernelEx was called last on this thread.
const cudaLaunchConfig_t& launched();
/// Gives all GPUs a value of an attribute; from the start they have compute capability 9, and 0 of all others.
void set_attribute(cudaDeviceAttr attribute, int value);
/// Returns the number of the runtime's allocations that were not freed.
int allocations_left();
/// Whether there is a kernel of the library's own for GEMMs; from the start there is none.
void have_gemm_kernels(bool have);
/// Whether the GPUs have fused GEMMs, as Hopper's have; from the start they do.
void have_fused_gemms(bool have);
/// Whether something has used the GPU in this process.
bool has_context(int device);
/// How often the GPU's primary context is retained.
int retained(int device);
/// How many contexts this thread has, one of which is current.
int contexts_of_thread();
/// As calls of the runtime do that need a GPU: where the thread has none, the one that cudaSetDevice chose, or GPU 0.
void start_current();
/// By how many nanoseconds the GPU's timer is ahead of the host's clock.
void set_ahead(int device, std::int64_t ns);
/// Memory that other processes can map, as an allocator with expandable segments gives it. Stays.
void* exportable_memory(int device, std::size_t bytes);

}  // namespace tandem::test
