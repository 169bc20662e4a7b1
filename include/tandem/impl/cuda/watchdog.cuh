#pragma once
/// Bounded waits.

#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/ptx.cuh"
#include "tandem/impl/cuda/stall.h"

namespace tandem::cuda {

/// Aborts all waits of the world. The first of a PE's waits reports. Returns 0, or the PE that aborted before.
__device__ inline std::uint32_t abort_waits(const Context& context, std::uint32_t why, int block, const void* word,
                                            Epoch expected, Epoch found) {
  const std::uint32_t by = static_cast<std::uint32_t>(context.world_pe) + 1;
  // Not an exchange: the first value, from here or from another PE, must stay.
  if (const std::uint32_t first = atomicCAS(context.abort, 0, by)) return first;
  WaitReport& report = *context.report;
  report.block = block;
  report.word = word;
  report.expected = expected;
  report.found = found;
  report.without_wait = pe_without_wait(context, global_timer());
  __threadfence_system();
  *static_cast<volatile std::uint32_t*>(&report.set) = why;
#pragma unroll 1  // little code, because every wait contains it
  for (int pe = 0; pe < context.world_pes; ++pe) {
    if (pe == context.world_pe) continue;
    auto* const abort = reinterpret_cast<char*>(context.abort_on_pe0) + pe * context.abort_stride;
    *reinterpret_cast<volatile std::uint32_t*>(abort) = by;
  }
  return 0;
}

/// Ends a wait because another wait was aborted. The PE's first such wait reports.
__device__ inline void end_early(const Context& context, std::uint32_t by, const void* word, Epoch expected,
                                 Epoch found) {
  WaitReport& report = *context.report;
  *static_cast<volatile std::uint32_t*>(&report.ended_by) = by & ~kEndIsReported;
  if ((atomicOr(context.abort, kEndIsReported) & kEndIsReported) != 0) return;
  report.ended.block = static_cast<int>(blockIdx.x);
  report.ended.word = word;
  report.ended.expected = expected;
  report.ended.found = found;
  __threadfence_system();
  *static_cast<volatile std::uint32_t*>(&report.ended.is_set) = 1;
}

/// Returns whether a wait that began at `begin` ends at `now`: `by` aborted before, or its time is up.
__device__ inline bool is_wait_over(const Context& context, std::uint32_t by, std::uint64_t begin, std::uint64_t now,
                                    const void* word, Epoch expected, Epoch found) {
  if (by == 0) {
    if (!is_stalled(context, begin, now) && now - begin < context.arrival_timeout_ns) return false;
    by = abort_waits(context, kTimedOut, static_cast<int>(blockIdx.x), word, expected, found);
  }
  if (by != 0) end_early(context, by, word, expected, found);
  return true;
}

/// Does the same as a call, because inlined code would slow down waits that are answered.
__device__ __noinline__ inline bool ask_whether_wait_is_over(const Context& context, std::uint32_t by,
                                                             std::uint64_t begin, std::uint64_t now, const void* word,
                                                             Epoch expected, Epoch found) {
  return is_wait_over(context, by, begin, now, word, expected, found);
}

/// The time limit of one wait. It is used after every poll that found nothing: `if (watchdog.is_due() &&
/// watchdog.is_over(...)) stop`.
class Watchdog {
 public:
  __device__ explicit Watchdog(const Context& context) : context_(context) {}

  /// Returns whether it is time for more than a poll.
  __device__ bool is_due() { return ++polls_ % kPollsBetweenLooks == 0; }

  /// Returns whether to stop waiting, because the time is up or another wait was aborted.
  __device__ bool is_over(const void* word, Epoch expected, Epoch found) {
    const std::uint32_t by = look();
    return lasts(by) && ask_whether_wait_is_over(context_, by, begin_, now_, word, expected, found);
  }
  /// Does the same without a call: beside a call, ptxas makes WGMMA instructions wait for each other, and kernels need
  /// more registers.
  __device__ bool is_over_without_call(const void* word, Epoch expected, Epoch found) {
    const std::uint32_t by = look();
    return lasts(by) && is_wait_over(context_, by, begin_, now_, word, expected, found);
  }

 private:
  static constexpr unsigned kPollsBetweenLooks = 256;

  __device__ std::uint32_t look() {
    now_ = global_timer();
    if (begin_ == 0) begin_ = now_;
    return *static_cast<volatile std::uint32_t*>(context_.abort);
  }
  __device__ bool lasts(std::uint32_t by) const { return by != 0 || now_ - begin_ >= kLastsNs; }

  const Context& context_;
  std::uint64_t begin_ = 0;
  std::uint64_t now_ = 0;
  unsigned polls_ = 0;
};

}  // namespace tandem::cuda
