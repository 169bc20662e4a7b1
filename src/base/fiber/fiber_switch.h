#pragma once
/// The switch of stacks beneath `Fiber`: two backends behind one class.
///
/// Boost.Context does it in a few nanoseconds. With TANDEM_SANITIZER_FIBERS, `ucontext` does, and every switch is
/// announced to AddressSanitizer and ThreadSanitizer, which otherwise take another stack for a corrupted one.

#include <memory>

#include "base/fiber/fiber_stacks.h"

#if !defined(TANDEM_SANITIZER_FIBERS)
#include <boost/context/detail/fcontext.hpp>
#endif

namespace tandem {

class Switch {
 public:
  /// The function that runs on the new stack. It ends with `leave_for_good`, and no exception may leave it.
  using Main = void (*)(void* argument);

  Switch();
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// Prepares `main(argument)` on `stack`, to begin with the first `enter`. Forgets what was there before.
  void prepare(const Stack& stack, Main main, void* argument);
  /// Onto the fiber's stack; returns when the fiber leaves.
  void enter();
  /// Switches back to the caller of `enter`; returns with the next `enter`.
  void leave();
  [[noreturn]] void leave_for_good();

#if defined(TANDEM_SANITIZER_FIBERS)
 private:
  struct State;
  std::unique_ptr<State> state_;
#else
 private:
  static void begin(boost::context::detail::transfer_t from);

  Main main_ = nullptr;
  void* argument_ = nullptr;
  void* other_ = nullptr;  // the side that does not run: the fiber's context, or the context that entered
#endif
};

#if !defined(TANDEM_SANITIZER_FIBERS)
// Inline because every `ret` that follows a switch of stacks is mispredicted.
inline void Switch::enter() { other_ = boost::context::detail::jump_fcontext(other_, this).fctx; }
inline void Switch::leave() { other_ = boost::context::detail::jump_fcontext(other_, this).fctx; }
#endif

}  // namespace tandem
