#pragma once
/// The happens-before race detector: an observer of every access and every synchronisation of a run.
///
/// Each thread (host program, stream, block, role) has a vector clock. A put has a component of its own, as it runs
/// concurrently with its issuer until quiet. A thread's stores to each other PE also have their own component, because
/// a fence orders them for that PE alone. The table of acquiring and releasing operations is in
/// docs/reference/checker.md.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "check/shadow.h"
#include "sim/memory/memory.h"
#include "sim/run/monitor.h"
#include "tandem/check.h"

namespace tandem::checker {

enum class ThreadKind : std::uint8_t { kHost, kStream, kBlock, kRole };

/// A put or get in flight, which runs concurrently with its issuer.
struct Agent {
  Stamp stamp;
  int peer = 0;
  bool reachable = true;
  bool blocking = false;
  bool is_get = false;
  bool fenced = false;
};

/// The knowledge that a wait gains from a signal.
struct Carried {
  Clock released;
  Sent sent;
};

/// A signal in flight.
struct Parcel : Carried {
  Clock knew;    // everything that happens before its issue; empty if `released` covers that
  Stamp issued;  // of its issuer's own component
  sim::Thread issuer = sim::kNoThread;
  Scope scope = Scope::kSystem;
  bool through_nic = false;
  int word_bytes = sizeof(Signal);
  std::uint32_t info = 0;
  int occurrence = 0;
  enum class Release : std::uint8_t { kNothing, kReads, kOwnData, kEverything } release = Release::kNothing;
};

/// One value that a word had, with the signal that brought it.
struct Entry {
  Epoch value = 0;
  std::shared_ptr<const Parcel> parcel;  // `released` over the whole release sequence
};

/// A finished wait for a word, or an atomic on it.
struct Acquired {
  std::vector<Entry> passed;  // each value with which it may have finished
  bool relaxed = false;
  const void* word = nullptr;
  Cmp cmp = Cmp::kEq;
  Epoch value = 0;
  std::uint32_t info = 0;
  int occurrence = 0;
};

/// An unfinished wait, or a loop that polls forever.
struct Waiting {
  const Signal* words = nullptr;
  Size n = 0;  // 0: packets
  Size stride = 1;
  Cmp cmp = Cmp::kGe;
  Epoch value = 0;
  std::uint32_t info = 0;
  std::uint64_t number = 0;  // in the order in which waits start
  int bytes = sizeof(Signal);
  bool polls = false;
};

struct ThreadState {
  ThreadKind kind = ThreadKind::kHost;
  int pe = 0;
  sim::Thread parent = 0;  // a block's stream, a role's block
  int index = 0;           // of a block or role
  std::string name;        // of a stream; of a block's kernel
  int launch = 0;          // of that kernel in its stream
  Slot slot = 0;
  Clock now;      // happens before the next operation
  Clock settled;  // complete everywhere: any signal follows it
  Clock fenced;   // signals to PEs without an entry in fenced_to follow it
  Clock tensor;   // happens before the next read of the tensor-memory engine
  Sent over;      // accesses, here and at senders, that are over
  std::map<int, Clock> fenced_to;
  std::map<int, Slot> store_slots;  // by destination
  std::vector<Agent> agents;
  std::vector<Slot> free_slots;              // of finished agents that nothing remembers
  std::vector<Tick> quiets;                  // the tick of each quiet
  std::deque<std::pair<Clock, Sent>> inbox;  // of a stream: the host's clock when it enqueued each work
  std::deque<Acquired> acquired;
  std::optional<Waiting> waiting;
  bool running = false;
  bool before_epoch = false;  // it must not use memory yet
};

/// The description of an access or a signal, for reports.
struct Info {
  Site site;
  const char* operation = "";
  sim::Thread thread = 0;
  std::string kernel;
  int launch = 0;
  int times = 0;  // the number of times that it happened so far
  bool transfer = false;
  bool nonblocking = false;
  bool is_get = false;
  int peer = 0;
  sim::Time last = 0;  // the last time at which it happened
};

class Detector : public sim::Monitor {
 public:
  explicit Detector(int pes, bool finds_uninitialised_reads = true);
  /// Sets the memory and the engine of the run. Called before the run.
  void attach(const sim::Memory& memory, const sim::Engine& engine) {
    memory_ = &memory;
    engine_ = &engine;
  }

  const std::vector<Finding>& findings() const { return findings_; }
  /// Returns a hash over all accesses, in any order. Runs that differ only in epochs have the same.
  std::uint64_t footprint() const { return footprint_; }
  /// Returns the number of accesses and of tests that were false.
  std::uint64_t operations() const { return operations_; }
  /// Names the cause of a Deadlock. Called after it was thrown.
  Finding explain_hang(const std::string& report) const;

  sim::Thread add_host(int pe) override;
  sim::Thread add_stream(int pe, const std::string& name) override;
  sim::KernelId begin_kernel(sim::Thread stream, const std::string& name, bool epoch_first) override;
  sim::Thread begin_block(sim::KernelId kernel, int block) override;
  void next_epoch(sim::Thread block) override;
  void end_block(sim::KernelId kernel, sim::Thread block) override;
  sim::Thread begin_role(sim::Thread block, int role) override;
  void end_role(sim::Thread block, sim::Thread role) override;
  void allocated(const void* begin, Size bytes) override;
  void enqueue(sim::Thread stream) override;
  void begin_work(sim::Thread stream) override;
  void record_event(sim::Thread stream, const void* event) override;
  void wait_event(sim::Thread stream, const void* event) override;
  void synchronize(sim::Thread stream) override;
  void host_barrier() override;
  void out_of_bounds(sim::Thread id, const char* operation, const void* address, Size bytes, Site site) override;
  void access(sim::Thread id, const sim::MemoryAccess& access, Site site) override;
  sim::Message transfer(sim::Thread id, const sim::Transfer& transfer, Site site) override;
  void fence(sim::Thread id, Site site) override;
  void quiet(sim::Thread id, Site site) override;
  sim::Message signal(sim::Thread id, const sim::SignalUpdate& update, Order order, int target, bool reachable,
                      Site site) override;
  void signal_arrives(sim::Message message, const sim::SignalUpdate& update) override;
  void begin_wait(sim::Thread id, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Site site) override;
  void end_wait(sim::Thread id, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order,
                bool proxy_fence, Site site) override;
  void tested_false(sim::Thread id, Site site) override;
  void polls_for_ever(sim::Thread id, const sim::Look& look, Site site) override;
  void atomic(sim::Thread id, const sim::AtomicAccess& access, Site site) override;

 private:
  using Entries = std::deque<Entry>;
  struct Writer {
    Stamp stamp;
    Stamp issued = {};  // of its issuer's own component
    std::uint32_t info = 0;
    int occurrence = 0;
    Epoch value = 0;  // set or added
    bool sets = true;
    bool through_nic = false;
  };
  struct Word {
    Entries entries;              // the first value, then each change in order; none: no signal yet
    std::vector<Writer> writers;  // that may still be unordered with the next one
  };
  struct Kernel {
    sim::Thread stream = 0;
    std::string name;
    Clock begin;
    Sent over;
    bool epoch_first = false;
    int launch = 0;
  };

  ThreadState& of(sim::Thread thread) { return threads_[thread]; }
  const ThreadState& of(sim::Thread thread) const { return threads_[thread]; }
  sim::Thread add_thread(ThreadKind kind, int pe, sim::Thread parent, int index, const std::string& name);
  sim::Thread chained(ThreadKind kind, sim::Thread parent, int index);
  Slot new_slot(sim::Thread owner);
  /// Returns the number of an operation in `infos_`, and counts the operation.
  std::uint32_t info(sim::Thread thread, const char* operation, Site site);

  static void advance(ThreadState& thread);
  void prune(ThreadState& thread);
  /// Retires the component of a finished agent. It is reused when nothing remembers its stamps.
  void release_slot(const Agent& agent);
  /// Frees the retired components that neither shadow memory nor the writers of a word remember.
  void reuse_retired();
  Stamp store_stamp(sim::Thread id, int destination);
  Stamp begin_agent(sim::Thread id, const sim::Transfer& transfer);
  /// Returns `thread.now` with the fenced puts to `destination`; it is in `own` if there are such puts.
  static const Clock* after_fences(const ThreadState& thread, int destination, Clock& own);
  static Clock ordered_before_signal(const ThreadState& thread, int destination);
  static Clock ordered_before_notify(const ThreadState& thread, int destination, bool reachable);

  /// Counts an operation. Throws Deadlock for a run that does not end.
  void count_operation(std::uint32_t number);
  /// Reports data that no PE has written and whose value (`contents`) an access uses.
  void check_written(const void* address, const void* contents, Size bytes, std::uint32_t number);
  void record(sim::Thread thread, const void* address, Size bytes, NewAccess access);
  /// The events of a transfer: its begin in the thread, the read of its source and the write of its data.
  struct TransferStamps {
    Stamp own, source, agent;
  };
  sim::Message signal_of(sim::Thread id, const sim::Transfer& transfer, const TransferStamps& stamps,
                         std::uint32_t number);
  void release_source(const ThreadState& thread, const sim::Transfer& transfer, Parcel& parcel);
  sim::Message send(Parcel parcel);
  void note_writer(sim::Thread id, const void* address, Writer next, std::uint32_t number);
  static Record atomic_record(Stamp stamp, std::uint32_t number, Role role, Scope scope, const void* address,
                              int bytes);
  void record_signal(sim::Thread id, const Signal* word, Role role, Stamp stamp, std::uint32_t number);
  /// Returns whether each of two atomics has the other's thread in its scope, which PTX calls morally strong.
  bool reach_each_other(sim::Thread a, Scope scope_of_a, sim::Thread b, Scope scope_of_b) const;
  bool reaches(const Parcel& parcel, sim::Thread thread, Scope scope) const;
  sim::Thread block_of(sim::Thread thread) const;
  /// Adds the word's value before its first change, which carries nothing.
  void begin_entries(Word& word, Epoch value) const;
  static void add_entry(Word& word, Epoch value, std::shared_ptr<const Parcel> parcel);
  /// Forgets the signals' values of these bytes, which a plain store or an allocation has replaced.
  void forget_entries(const void* address, Size bytes);
  /// Returns the first value that the thread may still see: a change that it knows of has overwritten earlier ones.
  Entries::const_iterator first_visible(const Entries& entries, const ThreadState& thread) const;
  static void acquire(ThreadState& thread, const Carried& carried, bool proxy_fence);
  static void remember(ThreadState& thread, Acquired acquired);

  // Findings.
  void report_conflict(sim::Thread id, const void* address, const NewAccess& access, const Conflict& conflict);
  void report_out_of_bounds(const void* address, Size bytes, std::uint32_t number);
  void report_uninitialised(const void* address, Size bytes, std::uint32_t number);
  void report_signal_race(const Writer& first, const Writer& second, const void* word);
  void report_before_epoch(std::uint32_t number);
  bool is_new(const Finding& finding);
  std::string kind_of(const Record& first, const Record& second) const;
  std::string missing(const Record& first, sim::Thread id, const NewAccess& second) const;
  std::string missing_within(const Record& first, const Record& second) const;
  std::string missing_of_word(const Record& first, const Record& second) const;
  std::string weak_signal(const Record& first, const ThreadState& thread) const;
  std::string old_value(const Record& first, const ThreadState& thread) const;
  std::string weakness(const Record& first, const Parcel& parcel, bool relaxed) const;
  std::string missing_altogether(const Record& first, const ThreadState& thread, const Record& second) const;
  /// Returns whether a record is of a signal word, and not of plain data that atomics use.
  bool is_of_signal(const Record& record) const;
  /// Returns the tick of the issuer's own component at which an access was issued.
  Tick issued_at(Stamp stamp) const;
  /// Returns whether the access happens before the issue of the signal.
  bool follows(const Parcel& parcel, const Record& access) const;
  /// Returns whether a wait for the signal is ordered after the access.
  static bool carries(const Parcel& parcel, const Record& access);
  std::string described(const Acquired& wait) const;
  std::string described(const Parcel& parcel) const;
  CheckSite site(std::uint32_t number, int occurrence = 0) const;
  std::string who(sim::Thread id, const std::string& kernel) const;
  std::string place(const void* address, Range bytes) const;

  // Hangs.
  struct Blocked {
    sim::Thread thread = 0;
    const Signal* word = nullptr;
    int writer = -1;
    bool certain = false;  // the writer has written the word, or packet, before
  };
  std::vector<Blocked> blocked() const;
  int last_writer(int pe, Size offset, bool packet) const;
  void name_writer(Blocked& blocked) const;
  std::string found_by(const Blocked& blocked) const;

  bool finds_uninitialised_reads_;
  const sim::Memory* memory_ = nullptr;
  const sim::Engine* engine_ = nullptr;
  std::vector<sim::Thread> hosts_;   // by PE
  std::deque<ThreadState> threads_;  // references stay
  std::map<std::tuple<sim::Thread, int>, sim::Thread> chains_;
  std::vector<Kernel> kernels_;
  std::vector<sim::Thread> owners_;  // of slots
  struct AgentSlot {
    Stamp issued;  // the issuer's component at the last issue; for stores to a PE at the first
    Tick tick = 0;
    bool is_free = false;
  };
  std::vector<AgentSlot> agent_slots_;  // by slot
  std::vector<Slot> retired_;           // components whose stamps something may remember
  std::size_t sweep_at_ = 256;          // retired components
  std::vector<Info> infos_;
  std::map<std::tuple<const char*, int, const char*, sim::Thread, std::string, int>, std::uint32_t> info_numbers_;
  std::map<std::pair<sim::Thread, std::string>, int> launches_;  // so far, by stream and kernel
  std::vector<Shadow> shadows_;                                  // by PE
  Size cells_ = 0;
  std::uint64_t operations_ = 0;
  std::uint32_t endless_ = 0;  // the operation that exceeded the limit; 0: none did
  std::uint64_t footprint_ = 0;
  std::vector<std::shared_ptr<Parcel>> parcels_;  // in flight; [0] is none
  std::vector<sim::Message> free_parcels_;
  std::map<const void*, Word, std::less<>> words_;                  // by address
  std::unordered_map<const void*, std::pair<Clock, Sent>> events_;  // by address
  std::uint64_t waits_ = 0;
  std::vector<Finding> findings_;
  std::set<std::string> seen_;
};

}  // namespace tandem::checker
