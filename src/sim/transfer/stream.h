#pragma once
/// A simulated stream: a queue of operations, each of which starts when the previous one is done.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/kernel.h"
#include "tandem/stream.h"

namespace tandem::sim {

struct SimEvent final : tandem::detail::EventState {
  const Simulator* of = nullptr;
  bool done = false;
  bool after_work = false;  // otherwise it marks no work
  Cause cause;              // the operation after which it was recorded
  std::vector<std::function<void()>> waiting;
};

/// Throws InvalidArgument for a grid that `machine` cannot take.
void check_launch(const Machine& machine, const tandem::detail::KernelLaunch& kernel);

class SimStream : public tandem::detail::StreamBackend {
 public:
  SimStream(Simulator& simulator, int pe, std::string name);

  void launch(tandem::detail::KernelLaunch kernel) override;
  void gemm(const Gemm& gemm, const Team& team) override;
  bool adds_up(const Gemm& gemm) const override;
  void copy(void* to, const void* from, Size bytes) override;
  void write_signal(Signal* word, const Epoch* from, Epoch value) override;
  void wait_signal(const Signal* word, Epoch value) override;
  std::shared_ptr<tandem::detail::EventState> record() override;
  void wait(const std::shared_ptr<tandem::detail::EventState>& state) override;
  void synchronize() override;
  Team world_team() const override;
  void* native() override { return nullptr; }

 private:
  struct Work {
    std::string name;
    std::function<void()> start;     // calls `finish` when the work is done, perhaps at once
    std::shared_ptr<Kernel> kernel;  // null for other work
  };
  struct Copy;

  void enqueue(std::string name, std::function<void()> start, std::shared_ptr<Kernel> kernel = {});
  void enqueue_kernel(KernelRequest request);
  void start_next();
  Pe& device() const { return sim_.pes[static_cast<std::size_t>(pe_)]; }
  bool places_early() const;
  int most_room(const tandem::detail::KernelLaunch& kernel) const;
  /// Calls `begin` at once, or where a PE's kernels run one at a time, when it is this stream's turn.
  void begin_kernel(std::function<void()> begin);
  void end_kernel();
  /// Begins the oldest kernel of the PE if it can start.
  void begin_oldest_kernel();
  bool runs_one_kernel() const;
  /// Returns whether all of the PE's streams share one hardware queue.
  bool shares_queue() const;
  /// Returns whether the oldest enqueued work that has not started belongs to this stream.
  bool has_turn() const;
  /// Passes the turn on after its work was started.
  void pass_turn();
  /// Lets the kernel behind the first work take its places, if that is allowed.
  void place_next();
  /// Finishes the work at the front. `cause` is its end, which lets the next work start.
  void finish(const Cause& cause);
  /// Calls `then` after the gap that a kernel's launch costs.
  void after(Time delay, std::function<void()> then);
  /// Throws InvalidArgument for a word outside of the PEs' memory.
  void check_word(const char* call, const Signal* word) const;
  void start_copy(const std::shared_ptr<Copy>& copy, int copy_engine);
  void continue_copy(const std::shared_ptr<Copy>& copy);
  /// Gives a copy engine to the next copy that waits for one.
  void pass_on_engine(int copy_engine);
  /// Notifies the monitor that wait_ is over.
  void end_wait();
  std::string describe() const;

  Simulator& sim_;
  const int pe_;
  const std::string name_;
  Cause last_;             // the end of the last finished work
  std::deque<Work> work_;  // the first one is running
  bool starting_ = false;
  bool running_ = false;         // the first one was started
  bool lets_next_ = false;       // the first one is a kernel, which lets the next take its places
  bool used_ = false;            // for more than events
  std::function<void()> begin_;  // of a kernel that waits for its turn
  SignalWait wait_;
  Site wait_site_;
  bool waiting_ = false;
  std::vector<Actor*> synchronizing_;
  const Thread thread_;  // the monitor's
};

}  // namespace tandem::sim
