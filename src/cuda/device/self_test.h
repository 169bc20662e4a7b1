#pragma once
/// The test of every link before a world is used: patterns that every PE writes to every other one and reads back from
/// there, by loads and stores.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "tandem/range.h"

namespace tandem::cuda {

/// Words of each pair, 8 bytes each.
constexpr Size kSelfTestWords = 8192;

/// A region of `pes` times kSelfTestWords words on every PE, at base + pe * stride.
struct SelfTest {
  std::byte* base = nullptr;
  Size stride = 0;  // in bytes
  int pes = 1;
  int me = 0;
  int round = 0;  ///< rounds 0 and 1 write complements
};

/// Writes this PE's patterns to all PEs.
void launch_self_test_writes(cudaStream_t stream, const SelfTest& test);
/// Counts wrong words, once all PEs have written: `wrong[p]` of what PE p wrote here, `wrong[pes + p]` of what this PE
/// reads back from PE p. Host memory that the GPU reaches, cleared before.
void launch_self_test_reads(cudaStream_t stream, const SelfTest& test, std::uint32_t* wrong);

}  // namespace tandem::cuda
