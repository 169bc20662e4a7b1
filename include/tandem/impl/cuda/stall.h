#pragma once
/// Detection of a stalled world, in which each PE has a wait that lasts. A PE without one computes, or it has not
/// reached the call yet (its host loads a checkpoint, compiles). The others' waits may last longer then.
///
/// Waits that last stamp a word of their PE, and its peers look whether it changes. Clocks of two GPUs are not
/// compared. Only waits that have lasted get here, so nothing of this delays one that is answered.

#include <cstdint>

#include "tandem/impl/config.h"
#include "tandem/impl/cuda/context.h"

/// The code has to be small, because every wait contains it.
#if defined(__CUDACC__)
#define TANDEM_NOT_UNROLLED _Pragma("unroll 1")
#else
#define TANDEM_NOT_UNROLLED
#endif

namespace tandem::cuda {

/// Words in each PE's device memory, zeros at first. The i-th SeenLook behind them is the one of PE i.
struct WaitWords {
  std::uint32_t abort;         // Context::abort
  std::uint32_t bell;          // of CPUs: not 0 where a thread of this PE may be asleep
  std::uint64_t look;          // changes while a wait of this PE lasts
  std::uint64_t looked_ns;     // by this PE's clock: when a wait of it last looked at its peers,
  std::uint64_t waits_for_ns;  // and last found one without a wait
};
struct SeenLook {
  std::uint64_t look;
  std::uint64_t changed_ns;
};

/// Returns the bytes of a PE's WaitWords with the SeenLooks of `pes` PEs.
constexpr Size wait_words_bytes(int pes) {
  return static_cast<Size>(sizeof(WaitWords)) + pes * static_cast<Size>(sizeof(SeenLook));
}

/// `peek` and `poke` access words that other PEs look at and change meanwhile.
template <class T>
TANDEM_DEVICE inline T peek(const volatile T& word) {
#if defined(__CUDA_ARCH__)
  return word;
#else
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
}
template <class T>
TANDEM_DEVICE inline void poke(volatile T& word, T value) {
#if defined(__CUDA_ARCH__)
  word = value;
#else
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
#endif
}

constexpr std::uint64_t kMs = 1'000'000;
/// The age from which on a wait lasts.
constexpr std::uint64_t kLastsNs = 50 * kMs;
/// The time between two looks at the peers.
constexpr std::uint64_t kLookNs = 10 * kMs;
/// A PE whose word has not changed for so long has no wait that lasts.
constexpr std::uint64_t kStaleNs = 100 * kMs;

TANDEM_DEVICE inline volatile WaitWords* wait_words(const Context& context, int pe) {
  return reinterpret_cast<volatile WaitWords*>(reinterpret_cast<char*>(context.abort_on_pe0) +
                                               pe * context.abort_stride);
}

TANDEM_DEVICE inline volatile SeenLook* seen_looks(const Context& context) {
  return reinterpret_cast<volatile SeenLook*>(const_cast<WaitWords*>(wait_words(context, context.world_pe)) + 1);
}

/// Returns a PE that was in no wait when one of this PE last looked; -1: none.
TANDEM_DEVICE inline int pe_without_wait(const Context& context, std::uint64_t now) {
  TANDEM_NOT_UNROLLED
  for (int pe = 0; pe < context.world_pes; ++pe)
    if (pe != context.world_pe && peek(seen_looks(context)[pe].changed_ns) + kStaleNs < now) return pe;
  return -1;
}

/// Returns whether all PEs of the world have had waits that last for Context::timeout_ns and more. The caller's wait
/// began at `begin` by this PE's clock and lasts. Its threads may race, because each writes the same values.
TANDEM_DEVICE inline bool is_stalled(const Context& context, std::uint64_t begin, std::uint64_t now) {
  volatile WaitWords& own = *wait_words(context, context.world_pe);
  poke(own.look, now);
  if (peek(own.looked_ns) + kLookNs <= now) {
    poke(own.looked_ns, now);
    TANDEM_NOT_UNROLLED
    for (int pe = 0; pe < context.world_pes; ++pe) {
      const std::uint64_t look = peek(wait_words(context, pe)->look);
      volatile SeenLook& seen = seen_looks(context)[pe];
      if (look == peek(seen.look)) continue;
      poke(seen.look, look);
      poke(seen.changed_ns, now);
    }
    if (pe_without_wait(context, now) >= 0) poke(own.waits_for_ns, now);
  }
  const std::uint64_t moved = peek(own.waits_for_ns);
  return (moved > begin ? moved : begin) + context.timeout_ns <= now;
}

}  // namespace tandem::cuda

#undef TANDEM_NOT_UNROLLED
