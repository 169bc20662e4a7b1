#pragma once
/// A stackful fiber: a function that can stop in the middle of any call and go on later.

#include <exception>

#include "base/fiber/fiber_stacks.h"
#include "base/fiber/fiber_switch.h"

namespace tandem {

/// One OS thread runs all fibers that share a pool. A fiber runs when somebody calls `resume`, until it calls `suspend`
/// or its entry returns. Making one costs no system call once the pool is warm; a finished fiber returns its stack at
/// once.
///
/// A suspended fiber that is destroyed or started again is abandoned. Its stack goes back to the pool, and the
/// destructors of the objects on it do not run. Call `unwind` before if they have to.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  /// Thrown by `suspend` while the fiber is being unwound. Code within a fiber that catches everything must let it
  /// pass.
  struct ForcedUnwind {};

  Fiber() = default;
  ~Fiber() { abandon(); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares `entry(argument)`, to begin with the first `resume`. `pool` must outlive the fiber. Throws OutOfMemory.
  void start(StackPool& pool, Entry entry, void* argument);

  /// Lets the fiber run until it suspends or finishes; it must be started and unfinished. No exception crosses a switch
  /// of stacks: one that leaves the entry is kept and rethrown here, with the fiber finished. Throws CheckFailed where
  /// the fiber was found to have overflowed its stack; it is finished then.
  void resume();

  /// Called within a fiber: gives control back to the caller of resume. Not within a destructor while `unwinding`.
  static void suspend();

  /// The fiber that is running, or null outside of all.
  static Fiber* current();
  /// Whether the running fiber is being unwound, so that a destructor can tell that it must not wait.
  static bool unwinding();

  /// Runs the destructors of everything on a suspended fiber's stack, by making its `suspend` throw ForcedUnwind, and
  /// finishes it. Nothing happens to a fiber that has not begun, is finished, or lies beside a stack that overflowed,
  /// except that it is finished afterwards. Where a destructor suspended it, which nothing can leave, the fiber is
  /// abandoned there: the objects of the frames around stay as they are. An exception other than ForcedUnwind that
  /// leaves the entry is rethrown.
  void unwind();

  /// True before `start`, after the entry returned, and after an error.
  bool finished() const { return state_ == State::kFinished; }

 private:
  enum class State { kFinished, kReady, kSuspended, kRunning };

  /// The C++ runtime's record of exceptions being handled. The runtime has one for each OS thread. Here each fiber has
  /// its own, so that it may suspend within a catch block (layout: Itanium C++ ABI, Exception Handling, section 2.2.2).
  struct ExceptionRecord {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };

  static void main(void* fiber);
  static void on_terminate();
  void switch_in();
  void abandon() noexcept;

  StackPool* pool_ = nullptr;
  Stack stack_;
  Switch switch_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  State state_ = State::kFinished;
  bool unwinding_ = false;
  ExceptionRecord other_record_;  // of the side that does not run
  std::exception_ptr error_;
};

}  // namespace tandem
