#pragma once
/// Bounded waits: when one ends in vain, and what it reports, as waits on GPUs do (tandem/impl/cuda/watchdog.cuh).

#include "tandem/impl/cuda/context.h"

namespace tandem::host {

/// What a block waits for.
struct Awaited {
  int block = 0;
  const void* word = nullptr;
  Epoch expected = 0;
  Epoch found = 0;
};

/// By the clock that all PEs of a machine share.
std::uint64_t now_ns();

/// What the PE's abort word holds; 0: nobody has given up.
std::uint32_t who_aborted(const cuda::Context& context);

/// The first of a PE reports, and ends everybody's waits. Returns 0, or who else has given up before.
std::uint32_t abort_waits(const cuda::Context& context, std::uint32_t why, const Awaited& awaited);

/// Whether a wait that began at `begin` ends at `now`: somebody gave up before, or its time is up. Reports it then.
bool is_wait_over(const cuda::Context& context, std::uint64_t begin, std::uint64_t now, const Awaited& awaited);

}  // namespace tandem::host
