#pragma once
/// The strands of a grid: its blocks and their roles as fibers of a few threads.

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/fiber/fiber.h"
#include "host/crew.h"
#include "host/watchdog.h"

namespace tandem::host {

/// The condition that a strand waits for.
class Wait {
 public:
  Wait() = default;
  virtual ~Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  /// Returns whether the condition holds. The thread calls it between its strands, and its memory order applies to all
  /// of them.
  virtual bool is_answered() = 0;
  /// Returns the awaited word, for reports. A wait without a word is for no PE, and has no timeout.
  virtual Awaited awaited() const { return {}; }
};

/// The exception that ends a strand whose wait was aborted or timed out.
struct WaitIsOver {};

class Worker;

/// A block, or a role of one.
class Strand {
 public:
  Strand(Worker& worker, std::function<void(Strand&)> body) : worker_(worker), body_(std::move(body)) {}

  /// Lets other strands go on until the wait is answered. The strand itself calls it. Throws WaitIsOver.
  void await(Wait& wait);
  /// Lets other strands go on before the next look of a polling loop. The strand itself calls it. Throws WaitIsOver.
  void look_again(const Awaited& looked_at);
  /// Notes an operation other than a look.
  void acted() { lasts_since_ = 0; }
  Worker& worker() const { return worker_; }

 private:
  friend class Worker;

  static void run(void* strand);
  void suspend();
  /// Returns the word that the strand waits for or polls now.
  Awaited awaited() const { return wait_ != nullptr ? wait_->awaited() : looked_at_; }

  Worker& worker_;
  std::function<void(Strand&)> body_;
  Fiber fiber_;
  Wait* wait_ = nullptr;
  bool looks_ = false;
  Awaited looked_at_;
  std::uint64_t lasts_since_ = 0;  // the time when the watchdog first saw this wait; 0: not yet
  bool has_begun_ = false;
  bool is_over_ = false;  // its wait was aborted or timed out
  bool has_ended_ = false;
};

/// Runs strands in turn on the calling thread.
class Worker {
 public:
  /// Ends the strands once `stop` is set, if there is one.
  explicit Worker(const cuda::Context& context, const std::atomic<bool>* stop = nullptr);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const cuda::Context& context() const { return context_; }
  /// Adds a strand. A strand may call it, too.
  void add(std::function<void(Strand&)> body);
  /// Runs all strands to their end. If a strand throws, ends the others and rethrows the exception.
  void run();

 private:
  /// Resumes each strand that can go on once. Returns whether any did more than look.
  bool pass();
  void resume(Strand& strand);
  bool has_answer() const;
  bool is_stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  /// Spins or sleeps after the `times`-th pass in a row without progress. Returns whether the bell rang meanwhile.
  bool pause(int times);
  /// Ends the waits that were aborted or timed out.
  void watch();
  void unwind_all();

  const cuda::Context context_;
  const std::atomic<bool>* const stop_;
  const bool has_processors_;  // for each PE of the world
  int most_spins_ = 0;         // of the present wait
  std::vector<std::unique_ptr<Strand>> strands_;
};

/// Runs body(strand, index) for each block, by as many threads as there are blocks and `threads` allows. If a block
/// throws, ends the others and rethrows the exception.
void run_blocks(const cuda::Context& context, int blocks, const GridThreads& threads,
                const std::function<void(Strand&, int)>& body);

}  // namespace tandem::host
