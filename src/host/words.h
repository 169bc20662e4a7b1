#pragma once
/// Access to words that PEs share, with atomics of the order that each operation documents.

#include <atomic>
#include <cstdint>

#include "base/outside_order.h"
#include "tandem/impl/cpu/block_core.h"

namespace tandem::host {

inline std::memory_order memory_order(Order order) {
  switch (order) {
    case Order::kRelaxed:
      return std::memory_order_relaxed;
    case Order::kAcquire:
      return std::memory_order_acquire;
    case Order::kRelease:
      return std::memory_order_release;
    case Order::kAcqRel:
      break;
  }
  return std::memory_order_acq_rel;
}

inline Epoch load(const Signal* word, std::memory_order order) {
  return std::atomic_ref<Epoch>(const_cast<Epoch&>(word->value)).load(order);
}

inline void change(const cpu::SignalUpdate& update, std::memory_order order) {
  order_leaves_process();
  const std::atomic_ref<Epoch> word(update.word->value);
  if (update.op == SignalOp::kSet)
    word.store(update.value, order);
  else
    word.fetch_add(update.value, order);
}

/// Orders a store before a load. ThreadSanitizer does not support fences. Without this one a sleeper may miss a ring,
/// and sleeps for a millisecond.
inline void full_fence() {
#if !defined(TANDEM_THREAD_SANITIZER)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace tandem::host
