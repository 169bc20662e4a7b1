#pragma once
/// What a kernel gets beside its arguments: its team, and how long a wait may last.

#include <cstdint>

#include "tandem/signal.h"
#include "tandem/team.h"

namespace tandem::cuda {

/// Written by the first waiter of a PE that gives up, in pinned host memory.
struct WaitReport {
  std::uint32_t set;  ///< 1 once the rest is valid
  int block;
  const void* word;
  Epoch expected;
  Epoch found;
};

struct Context {
  Team team;
  /// In this PE's device memory; once it is not 0, waits fall through: every kernel ends, its results are undefined.
  std::uint32_t* abort = nullptr;
  WaitReport* report = nullptr;
  std::uint64_t timeout_ns = 0;
};

}  // namespace tandem::cuda
