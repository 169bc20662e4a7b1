#pragma once
/// The comparison of calls by one warp.

#include "tandem/impl/cuda/comparison.h"
#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

/// Reports calls that differ. If another PE reported before, later work does nothing, and this report must at least
/// state that it was ended.
__device__ inline void disagree(const Context& context, std::uint32_t why, int other, const void* word, Epoch expected,
                                Epoch found) {
  abort_waits(context, why, other, word, expected, found);
  *static_cast<volatile std::uint32_t*>(&context.report->ended_by) =
      *static_cast<volatile std::uint32_t*>(context.abort) & ~kEndIsReported;
}

/// Two slots by parity suffice: no PE starts call e + 2 before all PEs have ended the comparison of call e + 1, and so
/// that of e. `tell(slot, count, sent, pe)` writes `count` to the second word of the slot on a PE, and then `sent` to
/// the first one.
template <class Tell>
__device__ void compare_calls(const Context& context, const Comparison& own, Tell tell) {
  const Epoch call = load_relaxed(own.calls) + 1;
  __syncwarp();
  const int n = context.team.size;
  const Signals slot = own.words + 2 * n * static_cast<Size>(call % 2);
  const Epoch sent = signal_value_of(call, own.signature);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32)
    tell((slot + Size{2} * context.team.me).on(i), own.count, sent, i);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {
    const Signal* const here = slot.local() + Size{2} * i;
    Watchdog watchdog(context);
    Epoch found;
    bool is_over = false;
    while (!is_over && !is_of_call(found = load_acquire(&here[0].value), call))
      is_over = watchdog.is_over(here, sent, found);
    if (is_over) continue;
    const Epoch count = load_relaxed(&here[1].value);
    if (found != sent)
      disagree(context, kOtherCalls, i, here, sent, found);
    else if (count != own.count)
      disagree(context, kCallsOfOtherCounts, i, here, own.count, count);
  }
  __syncwarp();
  if (threadIdx.x == 0) store_relaxed(own.calls, call);
}

}  // namespace tandem::cuda
