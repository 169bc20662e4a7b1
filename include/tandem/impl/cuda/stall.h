#pragma once
/// Whether a world stands still: each of its PEs has a wait that lasts. While one has none, it has not come to the call
/// yet (its host loads a checkpoint, compiles), or it computes: the others' waits may last longer then.
///
/// Waits that last stamp a word of their PE; their peers look whether it changes. Nobody compares clocks of two GPUs.
/// Only waits that have lasted get here: nothing of this is in the way of one that is answered.

#include <cstdint>

#include "tandem/impl/config.h"
#include "tandem/impl/cuda/context.h"

/// Little code: what follows lies within every wait.
#if defined(__CUDACC__)
#define TANDEM_NOT_UNROLLED _Pragma("unroll 1")
#else
#define TANDEM_NOT_UNROLLED
#endif

namespace tandem::cuda {

/// In each PE's device memory; zeros at first. What is seen of PE i is the i-th Seen behind it.
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

/// Bytes of a PE's WaitWords with what is seen of `pes` PEs.
constexpr Size wait_words_bytes(int pes) {
  return static_cast<Size>(sizeof(WaitWords)) + pes * static_cast<Size>(sizeof(SeenLook));
}

/// Words that other PEs look at and change meanwhile.
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
/// From when on a wait lasts.
constexpr std::uint64_t kLastsNs = 50 * kMs;
/// How often the peers are looked at.
constexpr std::uint64_t kLookNs = 10 * kMs;
/// A word that has not changed for so long: that PE has no wait that lasts.
constexpr std::uint64_t kStaleNs = 100 * kMs;

TANDEM_DEVICE inline volatile WaitWords* wait_words(const Context& context, int pe) {
  return reinterpret_cast<volatile WaitWords*>(reinterpret_cast<char*>(context.abort_on_pe0) +
                                               pe * context.abort_stride);
}

TANDEM_DEVICE inline volatile SeenLook* seen_looks(const Context& context) {
  return reinterpret_cast<volatile SeenLook*>(const_cast<WaitWords*>(wait_words(context, context.world_pe)) + 1);
}

/// A PE that was in no wait when one of this PE last looked; -1: none.
TANDEM_DEVICE inline int pe_without_wait(const Context& context, std::uint64_t now) {
  TANDEM_NOT_UNROLLED
  for (int pe = 0; pe < context.world_pes; ++pe)
    if (pe != context.world_pe && peek(seen_looks(context)[pe].changed_ns) + kStaleNs < now) return pe;
  return -1;
}

/// Whether all PEs of the world have had waits that last for Context::timeout_ns and more. Of a wait that began at
/// `begin` by this PE's clock and lasts; its threads may race: each writes what the others would.
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
