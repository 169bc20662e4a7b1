#pragma once
/// The test of every link before a world is used. Every PE writes patterns to every other PE and reads them back, by
/// stores and loads.

#include <cstdint>

#include "base/cuda_names.h"
#include "world/device/self_test.h"

namespace tandem::cuda {

using world::kSelfTestWords;
using world::SelfTest;

/// Writes this PE's patterns to all PEs.
void launch_self_test_writes(cudaStream_t stream, const SelfTest& test);
/// Counts wrong words when all PEs have written. `wrong[p]` counts words that PE p wrote here, and `wrong[pes + p]`
/// words that this PE reads back from PE p. `wrong` is host memory that the GPU reaches, cleared before.
void launch_self_test_reads(cudaStream_t stream, const SelfTest& test, std::uint32_t* wrong);

}  // namespace tandem::cuda
