#pragma once
/// The context of a kernel besides its arguments: its team, and the limits of its waits.

#include <cstdint>

#include "tandem/signal.h"
#include "tandem/team.h"

namespace tandem::cuda {

/// Kinds of a WaitReport.
constexpr std::uint32_t kTimedOut = 1;
constexpr std::uint32_t kCallsOfOtherCounts = 2;
constexpr std::uint32_t kOtherCalls = 3;

/// The report of an aborted wait, in pinned host memory, one for each PE.
struct WaitReport {
  std::uint32_t set;  ///< a kind once the rest is valid; written by the PE's first wait that aborts
  int block;          ///< block of the wait; for calls that differ, the other PE
  const void* word;
  Epoch expected;
  Epoch found;
  int without_wait;        ///< a PE without a wait at that time; -1: all were waiting
  std::uint32_t ended_by;  ///< value of the PE's abort word that ended a wait; 0: none
  /// The PE's first wait that another PE's abort ended. It is valid once `is_set`.
  struct Ended {
    std::uint32_t is_set;
    int block;
    const void* word;
    Epoch expected;
    Epoch found;
  } ended;
};

/// Values of an abort word: the PE that aborted, plus 1, or the host.
constexpr std::uint32_t kAbortedByHost = 0x80000000U;
/// Added to the abort word by the first wait that ends because of it and reports.
constexpr std::uint32_t kEndIsReported = 0x40000000U;

struct Context {
  Team team;
  /// Start of this PE's WaitWords (stall.h). Once its abort word is not 0, waits return at once: every kernel
  /// ends, with undefined results.
  std::uint32_t* abort = nullptr;
  /// Start of PE 0's WaitWords. A PE that aborts ends the waits of all PEs.
  std::uint32_t* abort_on_pe0 = nullptr;
  Size abort_stride = 0;  // in bytes
  int world_pes = 1;
  int world_pe = 0;
  WaitReport* report = nullptr;
  std::uint64_t timeout_ns = 0;          // CudaOptions::timeout_s: for a stalled world
  std::uint64_t arrival_timeout_ns = 0;  // for any wait
  /// Kernels after a failed comparison of calls do nothing.
  bool checks_calls = false;
};

}  // namespace tandem::cuda
