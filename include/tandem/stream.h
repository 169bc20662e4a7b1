#pragma once
/// Streams and events: work for a PE's device, in order.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/advanced/gemm.h"
#include "tandem/impl/kernel_type.h"
#include "tandem/impl/site.h"
#include "tandem/signal.h"
#include "tandem/team.h"

namespace tandem {

/// Blocks of a kernel and threads of each. All PEs of a team launch the same grid.
struct Grid {
  int blocks = 1;     ///< at least 1
  int threads = 512;  ///< of each block: a multiple of 32, at most 1024
};

namespace detail {

/// A kernel for any backend of this build. The simulator and CPUs run `on_cpu`, GPUs run `device`.
struct KernelLaunch {
  const KernelType* type = nullptr;
  Grid grid;
  Team team;
  const DeviceKernel* device = nullptr;
  const void* args = nullptr;  // valid during the call; null if the launch is only checked

  std::string name() const { return std::string(type->name); }
  /// Returns the kernel on CPUs. The result owns a copy of the arguments.
  std::function<void(cpu::Block&)> on_cpu() const;
};

/// A backend's event. Each backend derives its own, since a program may hold several backends.
struct EventState {
  virtual ~EventState() = default;
};

/// The facts of one call of a collective that must agree between PEs, and the memory in which the devices compare them.
/// A plan owns it: two words and two slots for each PE of the team, and the number of the last call.
struct CallComparison {
  std::string what;             ///< "all_reduce two_shot", for reports
  std::uint32_t signature = 0;  ///< of operation, type, algorithm, root
  Size count = 0;
  Signals words;
  Epochs calls;
};

/// The interface of a backend's stream.
class StreamBackend {
 public:
  virtual ~StreamBackend() = default;
  virtual void launch(KernelLaunch kernel) = 0;
  virtual void gemm(const Gemm& gemm, const Team& team) = 0;
  virtual void copy(void* to, const void* from, Size bytes) = 0;
  virtual void write_signal(Signal* word, const Epoch* from, Epoch value) = 0;
  virtual void wait_signal(const Signal* word, Epoch value) = 0;
  virtual std::shared_ptr<EventState> record() = 0;
  virtual void wait(const std::shared_ptr<EventState>& event) = 0;
  virtual void synchronize() = 0;
  /// If the PEs of the team do not agree, later work in the stream does nothing. Only worlds that check calls use it.
  virtual void compare_call(const CallComparison&, const Team&) {}
  virtual Team world_team() const = 0;
  virtual void* native() = 0;
  virtual bool adds_up(const Gemm&) const { return false; }

  /// The place of the next call in the host program, for reports.
  Site site = {};

  /// Runs `check` at each later synchronize, as long as it lives. Repeated calls with the same one have no effect.
  void check_at_synchronize(const std::shared_ptr<const std::function<void()>>& check);
  /// Runs the checks; the first that throws ends them.
  void run_checks() const;

 private:
  std::vector<std::weak_ptr<const std::function<void()>>> checks_;
};

}  // namespace detail

/// A point in a stream's work.
class Event {
 public:
  Event() = default;

 private:
  friend class Stream;
  explicit Event(std::shared_ptr<detail::EventState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::EventState> state_;
};

/// Executes work in order. Two streams of a PE may or may not run concurrently. Work that another stream waits for must
/// therefore be enqueued first. Only `synchronize` blocks the host.
class Stream {
 public:
  /// For backends; programs call World::make_stream.
  explicit Stream(std::shared_ptr<detail::StreamBackend> backend) : backend_(std::move(backend)) {}

  /// Runs K::run on every block of the grid, on this PE. `team` numbers the PEs for the kernel (default: the world).
  /// Throws InvalidArgument for an empty grid, or for a block larger than the machine's limit.
  template <class K>
  void launch(Grid grid, const typename K::Args& args, const Team& team, Site site = Site::here()) {
    launch(detail::kernel_type<K>(), grid, &args, team, site);
  }
  /// The same for the team of all PEs.
  template <class K>
  void launch(Grid grid, const typename K::Args& args, Site site = Site::here()) {
    launch<K>(grid, args, backend_->world_team(), site);
  }
  /// The same for a kernel whose type the caller does not know. `args` are the kernel's Args.
  void launch(const detail::KernelType& kernel, Grid grid, const void* args, const Team& team,
              Site site = Site::here());

  /// Enqueues the backend's fused GEMM. `team` numbers its PEs.
  void gemm(const Gemm& gemm, const Team& team, Site site = Site::here()) { at(site).gemm(gemm, team); }

  /// Returns whether GEMMs of these sizes and types may have a GemmSum as destination, with the norm of the given one.
  /// Addresses do not matter.
  bool adds_up(const Gemm& gemm) const { return backend_->adds_up(gemm); }

  /// Copies bytes with a copy engine, without an SM. One of the addresses may lie on a reachable peer.
  void copy_async(void* to, const void* from, Size bytes, Site site = Site::here()) { at(site).copy(to, from, bytes); }

  /// Writes a signal word here or on a peer, after all earlier work in the stream is visible there.
  void write_signal(Signal* word, Epoch value, Site site = Site::here()) {
    at(site).write_signal(word, nullptr, value);
  }
  /// Does the same with the value that `*from` has on the device at that time, as a captured graph needs it.
  void write_signal_from(Signal* word, const Epoch* from, Site site = Site::here()) {
    at(site).write_signal(word, from, 0);
  }
  /// Lets the stream continue when the local word is at least `value`.
  void wait_signal(const Signal* word, Epoch value, Site site = Site::here()) { at(site).wait_signal(word, value); }

  /// Returns an event that is complete when everything in this stream by now is done.
  Event record() { return Event(backend_->record()); }
  /// Lets the stream go on when the event is complete.
  void wait(const Event& event, Site site = Site::here()) { at(site).wait(event.state_); }
  /// Lets this stream continue when all work that `other` holds now is done.
  void wait_for(Stream& other, Site site = Site::here()) { wait(other.record(), site); }
  /// Blocks the host program until the stream is empty. Rethrows errors of the device, and throws InvalidArgument for
  /// data that a kernel refused.
  void synchronize() {
    backend_->synchronize();
    backend_->run_checks();
  }
  /// Used by plans: `check` runs at each later synchronize and throws what the device noted.
  void check_at_synchronize(const std::shared_ptr<const std::function<void()>>& check) {
    backend_->check_at_synchronize(check);
  }
  /// Used by plans: see Agreement.
  void compare_call(const detail::CallComparison& comparison, const Team& team) {
    backend_->compare_call(comparison, team);
  }
  /// Returns the cudaStream_t, for graph capture and for other libraries' work; null in the simulator.
  void* native() const { return backend_->native(); }

 private:
  detail::StreamBackend& at(Site site) {
    backend_->site = site;
    return *backend_;
  }

  std::shared_ptr<detail::StreamBackend> backend_;
};

}  // namespace tandem
