#pragma once
/// Waits of one thread, or of a warp, for signals and packets, with the context's time limits.

#include "tandem/impl/cuda/packets.cuh"
#include "tandem/impl/cuda/watchdog.cuh"
#include "tandem/signal.h"

namespace tandem::cuda {

/// Returns false if the wait was aborted.
__device__ inline bool poll(const Context& context, const Signal* word, Cmp cmp, Epoch value) {
  Watchdog watchdog(context);
  for (Epoch found; !compare(found = load_acquire(&word->value), cmp, value);)
    if (watchdog.is_due() && watchdog.is_over(word, value, found)) return false;
  return true;
}

// Waits for packets ask without a call whether they are over. Beside a call, a kernel would need 15 to 50 more
// registers, for values that live through the wait.

/// Returns one or two packets with their flags. If the wait is aborted, it returns the present contents.
__device__ inline PacketPair poll_packets(const Context& context, const LLPacket* packets, std::uint32_t flag,
                                          bool both) {
  Watchdog watchdog(context);
  for (;;) {
    const PacketPair got = load_packets(packets);
    const auto first_flag = static_cast<std::uint32_t>(got.packet[0] >> 32);
    const auto second_flag = both ? static_cast<std::uint32_t>(got.packet[1] >> 32) : flag;
    if (first_flag == flag && second_flag == flag) return got;
    if (watchdog.is_due() && watchdog.is_over_without_call(packets, flag, first_flag)) return got;
  }
}

/// Returns whether the packets of the wanted arrivals (a bit each) will not come.
template <class Arriving, int N>
__device__ inline bool timed_out(Epoch epoch, const Arriving (&arrivals)[N], unsigned wanted, Watchdog& watchdog) {
  const void* missing = nullptr;
  Epoch found = 0;
#pragma unroll
  for (int u = 0; u < N; ++u) {
    if ((wanted >> u & 1) == 0 || arrivals[u].wrong() == 0) continue;
    missing = arrivals[u].address();
    found = arrivals[u].found();
  }
  return watchdog.is_over_without_call(missing, epoch, found);
}

/// Waits until all packets of the wanted arrivals are here. If the wait is aborted, later code uses the present
/// contents. It writes to this PE's output and to peers' staging, but never to a peer's output. (Ending the threads
/// made small calls up to 0.2 us slower.)
template <class Arriving, int N>
__device__ inline void receive(const Context& context, Epoch epoch, Arriving (&arrivals)[N], unsigned wanted) {
  Watchdog watchdog(context);
  for (;;) {
#pragma unroll
    for (int u = 0; u < N; ++u)
      if ((wanted >> u & 1) != 0) arrivals[u].fetch();
    std::uint64_t wrong = 0;
#pragma unroll
    for (int u = 0; u < N; ++u)
      if ((wanted >> u & 1) != 0) wrong |= arrivals[u].wrong();
    if (Arriving::agreed(wrong == 0)) return;
    if (Arriving::any(wrong != 0 && watchdog.is_due() && timed_out(epoch, arrivals, wanted, watchdog))) return;
  }
}

}  // namespace tandem::cuda
