#pragma once
/// The test of every link before a world is used: patterns that every PE writes to every other one and reads back from
/// there, by loads and stores.

#include <cuda_runtime.h>

#include <cstdint>

#include "world/device/self_test.h"

namespace tandem::cuda {

using world::kSelfTestWords;
using world::SelfTest;

/// Writes this PE's patterns to all PEs.
void launch_self_test_writes(cudaStream_t stream, const SelfTest& test);
/// Counts wrong words, once all PEs have written: `wrong[p]` of what PE p wrote here, `wrong[pes + p]` of what this PE
/// reads back from PE p. Host memory that the GPU reaches, cleared before.
void launch_self_test_reads(cudaStream_t stream, const SelfTest& test, std::uint32_t* wrong);

}  // namespace tandem::cuda
