#pragma once
/// The order that a block's last fence gives to the plain signals behind it.

#include "host/words.h"

namespace tandem::host {

#if !defined(TANDEM_THREAD_SANITIZER)

class FenceOrder {
 public:
  void fence() { std::atomic_thread_fence(std::memory_order_release); }
  void change_behind(const cpu::SignalUpdate& update) { change(update, std::memory_order_relaxed); }
};

#else

/// ThreadSanitizer does not model fences, so a fiber on which nothing runs stands for the fence. Its clock holds the
/// block's operations before the fence, and signals are released on that fiber.
class FenceOrder {
 public:
  FenceOrder() = default;
  ~FenceOrder() {
    if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
  }
  FenceOrder(const FenceOrder&) = delete;
  FenceOrder& operator=(const FenceOrder&) = delete;

  void fence() {
    if (fiber_ == nullptr) fiber_ = __tsan_create_fiber(0);
    void* const self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
  }
  void change_behind(const cpu::SignalUpdate& update) {
    if (fiber_ == nullptr) return change(update, std::memory_order_relaxed);
    order_leaves_process();
    // Only the atomic runs between the switches: ThreadSanitizer would report any other read there as a race.
    Epoch* const word = &update.word->value;
    const Epoch value = update.value;
    const bool sets = update.op == SignalOp::kSet;
    void* const self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
    if (sets)
      __atomic_store_n(word, value, __ATOMIC_RELEASE);
    else
      __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
  }

 private:
  void* fiber_ = nullptr;
};

#endif

}  // namespace tandem::host
