#pragma once
/// Kernels of the GPU checks that are not portable.

#include <cuda_runtime.h>

#include <cstdint>

#include "tandem/signal.h"

namespace tandem::test {

/// Makes the litmus and stress kernels launchable.
void register_litmus_kernels();

/// Spins for up to `most_us` in about every fourth call of each PE. Whether and how long depends on `seed` and on the
/// word, which it increments.
void launch_delay(cudaStream_t stream, Epoch* word, std::uint64_t seed, double most_us);

/// Waits for `word` to reach the epoch of `epochs` and passes the pointer through consume_token. It compares the data
/// that the tensor-memory engine then reads (`count` words, a multiple of 4) with base + epoch.
void launch_tma_reader(cudaStream_t stream, const Signal* word, const Epoch* epochs, const std::uint32_t* data,
                       const std::uint32_t* base, std::uint32_t* differences, int count);

}  // namespace tandem::test
