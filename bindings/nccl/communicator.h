#pragma once
/// A communicator: a world of Tandem with the states that NCCL's users know.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/c/world.h"
#include "bindings/nccl/error.h"
#include "bindings/nccl/settings.h"
#include "bootstrap/protocol/mac.h"
#include "bootstrap/rendezvous/world_member.h"
#include "host/world/task_queue.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::nccl {

/// The operation of ncclRedOpCreatePreMulSum: each rank's input times a scalar of its own.
struct Scalar {
  DType type = DType::kF32;
  RunScale scale = {};
};

/// A message to or from `peer`.
struct Message {
  bool is_send;
  int peer;
  void* data;
  Size bytes;
  void* stream;
};

/// The work of one communicator in a group: collectives in order, and messages that progress side by side.
struct Work {
  std::vector<c::Call> collectives;
  std::vector<Message> messages;
  /// One-sided calls, in order.
  std::vector<std::function<void()>> one_sided;
  /// Changes of communicators, such as a split, in order. They come alone.
  std::vector<std::function<void()>> changes;
};

/// Returns the secret that the ranks of a communicator have in common.
bootstrap::Key lineage_of(const UniqueId& id);

class Communicator {
 public:
  /// The signals of one-sided calls that each pair of ranks has.
  static constexpr std::size_t kContexts = 4, kSignalsOfContext = 16, kSignals = kContexts * kSignalsOfContext;

  /// A registered range of memory.
  struct Range {
    void* memory;
    std::size_t bytes;
    bool is_window;
    /// All ranks map the memory, and calls use it in place.
    bool is_shared = false;
  };

  Communicator(const Settings& settings, int rank, int ranks, std::optional<int> device)
      : settings_(settings), rank_(rank), ranks_(ranks), device_(device) {}

  const Settings& settings() const { return settings_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Returns a number that is the same on all ranks.
  std::uint64_t hash();
  /// Returns the handle of the real NCCL that carries this communicator, if it does.
  std::optional<ncclComm_t> real();
  /// Returns it to a caller who ends it. Without such a caller `close` ends it.
  std::optional<ncclComm_t> take_real();
  /// Returns the device. Throws InvalidArgument before the communicator is ready.
  int device();

  // These functions meet the other ranks.

  /// Joins the ranks of `id`. `lineage` is a secret of all ranks, from which those of its parts derive.
  void join(const UniqueId& id, const bootstrap::Key& lineage);
  /// Makes `part` from the ranks of one color; without a color there is none.
  void split(int color, int key, Communicator& part);
  /// Makes `rest` from all ranks but `excluded`, which are sorted and do not call.
  void shrink(const std::vector<int>& excluded, Communicator& rest);
  /// Makes the larger `grown`, whose id one rank made.
  void grow(Communicator& grown);

  /// Lets all ranks map a window's memory, if it is of a kind that they can map.
  void share(const void* handle);
  /// Ends that.
  void unshare(const Range& range);
  /// Gives memory back to the system until `resume`.
  void suspend();
  void resume();

  /// Makes the id of the next larger communicator, on one rank.
  UniqueId id_to_grow();
  /// Runs a group's work. On CPUs it returns when the work is done.
  void run(Work& work);
  /// Returns the microseconds that a group's work would take, by the machine model.
  double simulate(const Work& work);
  /// Throws unless calls are allowed now.
  void check_usable();

  /// Ends the world, if there is one, and all waits for it. Any thread may call it.
  void abort(const std::string& why);
  /// Ends the waits of all ranks, and refuses further calls but those that shrink or end the communicator.
  void stop(const std::string& why);
  /// Waits for the work so far. Refuses further calls.
  void finalize();
  /// Returns the state for ncclCommGetAsyncError: a failed call, or a lost peer while a call is under way.
  Problem state();
  /// Reports, once, a call that has lasted for so many seconds, with the ranks that it waits for.
  void report_slow_call(double limit_s);
  /// Keeps the text and, if `is_lasting`, the failure for `state`.
  ncclResult_t keep(Problem problem, bool is_lasting);
  std::string last_problem();

  /// The thread for calls that do not block, and for groups of several communicators.
  host::TaskQueue& jobs() { return jobs_; }
  /// Waits until no call reads or writes buffers any more. A new communicator may still wait for its ranks.
  void wait_for_calls();
  /// Counts uses by other threads, for which the end waits.
  void enter();
  void leave();
  /// Returns whether its calls are complete when they return.
  bool is_on_cpus();
  /// Notes jobs that the caller does not wait for.
  void begin_job();
  void end_job();
  /// Waits for the other ranks, unless the world is over, and gives everything back.
  void close();

  int add_scalar(const Scalar& scalar);
  std::optional<Scalar> scalar(int number);
  bool remove_scalar(int number);
  void* add_range(const Range& range);
  std::optional<Range> range(const void* handle, bool is_window);
  /// Removes the range and returns it.
  std::optional<Range> remove_range(const void* handle, bool is_window);
  /// Notes that the program has freed memory, which may lie in a window.
  void forget(const void* memory);
  /// Returns the address on `rank` of a shared window's byte. Throws if the window is not shared.
  void* on_rank(const void* handle, std::size_t offset, int rank);
  /// Writes bytes into a window of another rank, and adds 1 to its signal. `handle` null: the signal alone.
  void put_signal(const void* handle, std::size_t offset, const void* data, Size bytes, int peer, std::size_t signal);
  /// Blocks until `peer` has sent `count` more of these signals.
  void wait_signal(int peer, std::size_t signal, std::uint64_t count);
  /// Returns the memory that this rank has taken.
  WorldProcess::MemoryUse memory();

 private:
  enum class Phase { kNew, kReady, kNone, kSuspended, kRevoked, kFinalized, kAborted };

  /// Calls that other ranks have not made, and since when that has been so.
  struct Slow {
    std::string waits;
    std::chrono::steady_clock::time_point since;
    bool is_reported = false;
  };

  WorldOptions world_options() const;
  std::unique_ptr<WorldProcess> make_world(const UniqueId& id, std::string& why) const;
  Bytes from_rank_0(bootstrap::WorldMember& meeting, const std::function<View()>& make) const;
  void join_real(bootstrap::WorldMember& meeting, const std::string& why);
  std::string carried_by(const std::string& carrier);
  /// Throws unless calls are allowed; the caller holds the mutex.
  void check_phase() const;
  void start(std::unique_ptr<WorldProcess> process, const bootstrap::Key& lineage);
  std::unique_ptr<c::CWorld> opened(std::unique_ptr<WorldProcess> process) const;
  c::CWorld& world();
  void run_calls(Work& work);
  void as_remote_if_lost(const std::function<void()>& work);
  void run_alone(Work& work);
  void multiply_alone(const c::Call& call);
  void run_collective(c::Call here);
  void hide_freed();
  Epoch* signal_on(int rank, int sender, std::size_t signal);
  void copy(void* to, const void* from, Size bytes, void* stream);
  void copy_whole(const c::Call& call);
  void run_messages(const std::vector<Message>& messages);
  void copy_own(const std::vector<Message>& messages);
  void* stream_of(void* given) const;
  bootstrap::Key derived(const std::string& purpose) const;

  const Settings settings_;
  int rank_;
  int ranks_;
  std::optional<int> device_;

  std::mutex running_;                // one call at a time
  std::unique_ptr<c::CWorld> world_;  // null where the real NCCL carries it, and for one rank until it multiplies
  std::optional<ncclComm_t> real_;
  std::optional<Stream> own_stream_;  // on CPUs, where programs have no streams
  bootstrap::Key lineage_{};
  Signals signals_;                      // of one-sided calls, on CPUs: for each sender those of all contexts
  std::vector<Epoch> own_signals_;       // the same for one rank
  std::vector<Epoch> consumed_signals_;  // by waits so far
  int splits_ = 0;
  int grown_ = 0;
  std::map<std::string, int> shrinks_;
  std::optional<UniqueId> grow_id_;  // on the rank that made it
  std::atomic<bool> has_called_ = false;

  std::mutex mutex_;  // never held during a wait for peers
  std::condition_variable changed_;
  Phase phase_ = Phase::kNew;
  Problem problem_;        // lasting
  std::string last_text_;  // of any problem
  int uses_ = 0;
  int calls_ = 0;
  Slow slow_;
  int jobs_under_way_ = 0;
  int next_scalar_ = ncclNumOps;
  std::map<int, Scalar> scalars_;
  std::map<const void*, std::pair<std::unique_ptr<char>, Range>> ranges_;  // a handle is the address of its char
  std::vector<const void*> freed_;                                         // shared memory that the program has freed
  host::TaskQueue jobs_;
};

}  // namespace tandem::nccl
