#pragma once
/// The strands of a grid: its blocks and their roles as fibers of one thread.

#include <functional>
#include <memory>
#include <vector>

#include "base/fiber/fiber.h"
#include "host/watchdog.h"

namespace tandem::host {

/// What a strand waits for.
class Wait {
 public:
  Wait() = default;
  virtual ~Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  /// Whether it has come. Asked between the strands of the thread, which the answer's order holds for.
  virtual bool is_answered() = 0;
  /// For reports; without a word: of a wait that is no PE's, and not bounded.
  virtual Awaited awaited() const { return {}; }
};

/// Ends a strand whose wait is over in vain.
struct WaitIsOver {};

class Worker;

/// A block, or a role of one.
class Strand {
 public:
  Strand(Worker& worker, std::function<void(Strand&)> body) : worker_(worker), body_(std::move(body)) {}

  /// Within it: lets others go on until the wait is answered. Throws WaitIsOver.
  void await(Wait& wait);
  /// Within it, for a loop that looks at a word again and again: lets others go on before the next look.
  void look_again(const Awaited& looked_at);
  /// It did something else than look.
  void acted() { lasts_since_ = 0; }
  Worker& worker() const { return worker_; }

 private:
  friend class Worker;

  static void run(void* strand);
  void suspend();
  /// What it waits for or looks at now.
  Awaited awaited() const { return wait_ != nullptr ? wait_->awaited() : looked_at_; }

  Worker& worker_;
  std::function<void(Strand&)> body_;
  Fiber fiber_;
  Wait* wait_ = nullptr;
  bool looks_ = false;
  Awaited looked_at_;
  std::uint64_t lasts_since_ = 0;  // when it was first seen in this wait; 0: not yet
  bool has_begun_ = false;
  bool is_over_ = false;  // its wait is
  bool has_ended_ = false;
};

/// Runs strands in turn on the calling thread.
class Worker {
 public:
  explicit Worker(const cuda::Context& context) : context_(context) {}
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const cuda::Context& context() const { return context_; }
  /// Also from within a strand.
  void add(std::function<void(Strand&)> body);
  /// Returns when all have ended. Where an exception left one, ends the others and throws it.
  void run();

 private:
  /// Lets each that can go on do so once; returns whether any did more than look.
  bool pass();
  void resume(Strand& strand);
  bool has_answer() const;
  /// Nobody could go on for the `times`-th time in a row. Returns whether the bell rang meanwhile.
  bool pause(int times);
  /// Ends the waits that are over.
  void watch();
  void unwind_all();

  const cuda::Context context_;
  std::vector<std::unique_ptr<Strand>> strands_;
};

}  // namespace tandem::host
