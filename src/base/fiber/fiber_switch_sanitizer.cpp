#if defined(TANDEM_SANITIZER_FIBERS)

#include <ucontext.h>

#include <cstdint>

#include "base/fiber/fiber_switch.h"

#if defined(__SANITIZE_ADDRESS__)
#define TANDEM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TANDEM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TANDEM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TANDEM_TSAN 1
#endif
#endif

#if defined(TANDEM_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TANDEM_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace tandem {

/// The state that sanitizers need: each side's stack for ASan, an identity for TSan. Its functions are always inline:
/// TSan counts calls and returns on each fiber, so a helper must return on the side that called it.
struct Switch::State {
  ucontext_t fiber{};
  ucontext_t outside{};
  Stack stack;
  Main main = nullptr;
  void* argument = nullptr;
  void* fiber_fake = nullptr;  // ASan's shadow of locals whose address outlives their frame
  void* outside_fake = nullptr;
  const void* outside_low = nullptr;
  std::size_t outside_bytes = 0;
  void* fiber_identity = nullptr;
  void* outside_identity = nullptr;

  [[gnu::always_inline]] void before_enter() {
#if defined(TANDEM_ASAN)
    __sanitizer_start_switch_fiber(&outside_fake, stack.low, static_cast<std::size_t>(stack.bytes));
#endif
#if defined(TANDEM_TSAN)
    outside_identity = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_identity, 0);
#endif
  }
  [[gnu::always_inline]] void after_enter() {  // on the fiber
#if defined(TANDEM_ASAN)
    __sanitizer_finish_switch_fiber(fiber_fake, &outside_low, &outside_bytes);
#endif
  }
  [[gnu::always_inline]] void before_leave([[maybe_unused]] bool for_good) {
#if defined(TANDEM_ASAN)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fiber_fake, outside_low, outside_bytes);
#endif
#if defined(TANDEM_TSAN)
    __tsan_switch_to_fiber(outside_identity, 0);
#endif
  }
  [[gnu::always_inline]] void after_leave() {  // outside
#if defined(TANDEM_ASAN)
    __sanitizer_finish_switch_fiber(outside_fake, nullptr, nullptr);
#endif
  }
  void drop_identity() {
#if defined(TANDEM_TSAN)
    if (fiber_identity != nullptr) __tsan_destroy_fiber(fiber_identity);
    fiber_identity = nullptr;
#endif
  }

  /// `makecontext` passes ints only: the pointer travels in two halves.
  static void start(unsigned high, unsigned low) {
    const auto bits = (static_cast<std::uint64_t>(high) << 32) | low;
    auto& self = *reinterpret_cast<State*>(static_cast<std::uintptr_t>(bits));
    self.after_enter();
    self.main(self.argument);
  }
};

Switch::Switch() : state_(std::make_unique<State>()) {}
Switch::~Switch() { state_->drop_identity(); }

void Switch::prepare(const Stack& stack, Main main, void* argument) {
  State& s = *state_;
  s.drop_identity();
  s = State{};
  s.stack = stack;
  s.main = main;
  s.argument = argument;
#if defined(TANDEM_TSAN)
  s.fiber_identity = __tsan_create_fiber(0);
#endif
  getcontext(&s.fiber);
  s.fiber.uc_stack.ss_sp = stack.low;
  s.fiber.uc_stack.ss_size = static_cast<std::size_t>(stack.bytes);
  s.fiber.uc_link = nullptr;
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&s));
  makecontext(&s.fiber, reinterpret_cast<void (*)()>(&State::start), 2, static_cast<unsigned>(bits >> 32),
              static_cast<unsigned>(bits));
}

void Switch::enter() {
  state_->before_enter();
  swapcontext(&state_->outside, &state_->fiber);
  state_->after_leave();
}

void Switch::leave() {
  state_->before_leave(false);
  swapcontext(&state_->fiber, &state_->outside);
  state_->after_enter();
}

void Switch::leave_for_good() {
  state_->before_leave(true);
  setcontext(&state_->outside);
  __builtin_unreachable();
}

}  // namespace tandem

#endif
