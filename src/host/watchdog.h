#pragma once
/// The watchdog: timeouts of waits, and their reports. Waits on GPUs do the same (tandem/impl/cuda/watchdog.cuh).

#include "tandem/impl/cuda/context.h"

namespace tandem::host {

/// The word that a block waits for, with the value it expects and the value it found.
struct Awaited {
  int block = 0;
  const void* word = nullptr;
  Epoch expected = 0;
  Epoch found = 0;
};

/// Returns the time of the clock that all PEs of a machine share.
std::uint64_t now_ns();

/// Returns the PE's abort word; 0 if no PE has aborted.
std::uint32_t who_aborted(const cuda::Context& context);

/// Returns whether the PE's work is skipped from now on, because some PE has aborted. Notes that in the PE's report.
bool is_skipped(const cuda::Context& context);

/// Aborts the waits of all PEs. The first call on a PE also writes the report, and returns 0. Later calls change
/// nothing, and return the abort word, which names the PE that aborted first.
std::uint32_t abort_waits(const cuda::Context& context, std::uint32_t why, const Awaited& awaited);

/// Returns whether a wait since `begin` is over at `now`, by an abort or a timeout. Reports the wait in that case.
bool is_wait_over(const cuda::Context& context, std::uint64_t begin, std::uint64_t now, const Awaited& awaited);

}  // namespace tandem::host
