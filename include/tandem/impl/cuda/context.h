#pragma once
/// What a kernel gets beside its arguments: its team, and how long a wait may last.

#include <cstdint>

#include "tandem/signal.h"
#include "tandem/team.h"

namespace tandem::cuda {

/// What a WaitReport says.
constexpr std::uint32_t kWaitedInVain = 1;
constexpr std::uint32_t kCallsOfOtherCounts = 2;
constexpr std::uint32_t kOtherCalls = 3;

/// In pinned host memory, one for each PE.
struct WaitReport {
  std::uint32_t set;  ///< one of the above once the rest is valid: written by the first of the PE that gives up
  int block;          ///< of the wait; of calls that differ, the other PE
  const void* word;
  Epoch expected;
  Epoch found;
  int without_wait;        ///< a PE that was in no wait then; -1: all were in one
  std::uint32_t ended_by;  ///< what a wait found in the PE's abort word, when it ended for that; 0: none did
  /// The first wait of the PE that ended because another PE gave up: valid once `is_set`.
  struct Ended {
    std::uint32_t is_set;
    int block;
    const void* word;
    Epoch expected;
    Epoch found;
  } ended;
};

/// In an abort word: the PE that gave up, plus 1; or the host did.
constexpr std::uint32_t kAbortedByHost = 0x80000000U;
/// Added to it by the first wait that ends for it, and reports.
constexpr std::uint32_t kEndIsReported = 0x40000000U;

struct Context {
  Team team;
  /// Begin of this PE's WaitWords (standstill.h); once it is not 0, waits fall through: every kernel ends, its results
  /// are undefined.
  std::uint32_t* abort = nullptr;
  /// Those of all PEs of the world: whoever gives up ends all waits.
  std::uint32_t* abort_on_pe0 = nullptr;
  Size abort_stride = 0;  // in bytes
  int world_pes = 1;
  int world_pe = 0;
  WaitReport* report = nullptr;
  std::uint64_t timeout_ns = 0;          // CudaOptions::timeout_s: of a world that stands still
  std::uint64_t arrival_timeout_ns = 0;  // of any wait
  /// Kernels that follow a failed agreement do nothing.
  bool checks_calls = false;
};

}  // namespace tandem::cuda
