#pragma once
/// Seams for checkers. A monitor observes every access and every synchronisation of a run in the order in which they
/// happen. Faults break operations for tests, and a schedule delays operations. All are null in an ordinary run, where
/// each costs one comparison.

#include <cstdint>
#include <string>

#include "sim/device/polling.h"
#include "sim/engine/engine.h"
#include "sim/memory/cpu_names.h"

namespace tandem::sim {

/// A sequence of operations in program order: a host program, a stream, a block, a role of one. The monitor numbers
/// them. A stream's block b is the same thread in all kernels of the stream.
using Thread = std::uint32_t;
inline constexpr Thread kNoThread = ~Thread{0};

/// The number of a signal in flight, by which the monitor finds its record; 0: none.
using Message = std::uint32_t;

/// A grid in flight.
using KernelId = std::uint32_t;

enum class AccessKind : std::uint8_t {
  kLoad,
  kMovingLoad,  ///< of data that is copied unchanged: nothing depends on its value
  kStore,
  kReduction,    ///< into the data there, atomic for each element: multimem.red
  kPacketLoad,   ///< of packets whose flags were waited for
  kPacketStore,  ///< each packet is its own signal
  kTensorLoad,   ///< by the tensor-memory engine: the asynchronous proxy
  kCopyEngineLoad,
  kCopyEngineStore,
  kHostLoad,
  kHostStore,
};

struct MemoryAccess {
  AccessKind kind = AccessKind::kLoad;
  const void* address = nullptr;
  Size bytes = 0;
};

/// A put or get at its issue. `signal` is the update of a put_signal.
struct Transfer {
  bool is_get = false;
  const void* to = nullptr;
  const void* from = nullptr;
  Size bytes = 0;
  int peer = 0;  // the other end's number in the world
  bool reachable = true;
  Completion completion = Completion::kBlocking;
  const SignalUpdate* signal = nullptr;
  bool signal_first = false;  // a broken put_signal: it releases nothing
};

/// A finished atomic. `writes` is false for a compare_swap that failed.
struct AtomicAccess {
  const void* address = nullptr;
  int bytes = 0;
  std::uint64_t old = 0;
  std::uint64_t value = 0;
  bool writes = true;
  Scope scope = Scope::kSystem;
  Order order = Order::kAcqRel;
};

class Monitor {
 public:
  virtual ~Monitor() = default;

  // Threads.
  virtual Thread add_host(int pe) = 0;
  virtual Thread add_stream(int pe, const std::string& name) = 0;
  /// With `epoch_first`, its blocks may overlap the stream's previous kernel on a GPU until they call next_epoch.
  virtual KernelId begin_kernel(Thread stream, const std::string& name, bool epoch_first) = 0;
  virtual Thread begin_block(KernelId kernel, int block) = 0;
  /// Called just before the block takes its epoch.
  virtual void next_epoch(Thread block) = 0;
  virtual void end_block(KernelId kernel, Thread block) = 0;
  virtual Thread begin_role(Thread block, int role) = 0;
  virtual void end_role(Thread block, Thread role) = 0;

  /// Called for memory with its first contents.
  virtual void allocated(const void* begin, Size bytes) = 0;

  // Host programs and streams.
  virtual void enqueue(Thread stream) = 0;
  virtual void begin_work(Thread stream) = 0;
  virtual void record_event(Thread stream, const void* event) = 0;
  virtual void wait_event(Thread stream, const void* event) = 0;
  virtual void synchronize(Thread stream) = 0;
  virtual void host_barrier() = 0;

  // Accesses.
  /// Called for an operation on an array that does not lie within one buffer.
  virtual void out_of_bounds(Thread thread, const char* operation, const void* address, Size bytes, Site site) = 0;
  virtual void access(Thread thread, const MemoryAccess& access, Site site) = 0;
  virtual Message transfer(Thread thread, const Transfer& transfer, Site site) = 0;
  virtual void fence(Thread thread, Site site) = 0;
  virtual void quiet(Thread thread, Site site) = 0;

  // Signals. `target` is the world's number of the PE whose word it is.
  virtual Message signal(Thread thread, const SignalUpdate& update, Order order, int target, bool reachable,
                         Site site) = 0;
  /// Called just before the word changes.
  virtual void signal_arrives(Message message, const SignalUpdate& update) = 0;
  virtual void begin_wait(Thread thread, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Site site) = 0;
  /// Called when all words compare true. With `proxy_fence`, reads by the tensor-memory engine are ordered too.
  virtual void end_wait(Thread thread, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order,
                        bool proxy_fence, Site site) = 0;
  virtual void tested_false(Thread thread, Site site) = 0;
  /// Called when the thread polls a word in a loop that no actor can end any more.
  virtual void polls_for_ever(Thread thread, const Look& look, Site site) = 0;
  virtual void atomic(Thread thread, const AtomicAccess& access, Site site) = 0;
};

/// The operations that a test may break, one call site at a time.
enum class SyncOperation : std::uint8_t {
  kSignal,
  kNotify,
  kPutSignal,
  kWait,
  kTest,
  kFence,
  kQuiet,
  kEpoch,
  kAtomic,
  kPacketStore,
  kPacketLoad,
  kStreamSignal,
  kStreamWait,
  kEventWait,
  kGate,
  kTileNotify,
  kSignalAfterReads,
};
inline constexpr int kSyncOperations = 17;

enum class Fault : std::uint8_t {
  kNone,
  kDropped,      ///< it does not happen
  kRelaxed,      ///< it happens and orders nothing
  kEarly,        ///< a wait for the previous value; a packet with the previous flag
  kSignalFirst,  ///< a put_signal whose signal does not wait for its data
  kSameParity,   ///< an epoch that advances by two: both halves of a double buffer coincide
  kNoProxyFence,
  kReadsOnly,  ///< a notify that is a signal_after_reads
};
inline constexpr int kFaults = 8;

/// Chooses the operations to break, for the mutation suite. It is called for every operation.
class Faults {
 public:
  virtual ~Faults() = default;
  virtual Fault at(SyncOperation operation, Site site) = 0;
};

/// The choice of legal delays: called at every point where one is possible, in the order of the run.
class Schedule {
 public:
  enum class Point : std::uint8_t { kHostStart, kLaunch, kBlockStart, kWake, kStore, kPut, kSignal, kCopy };

  virtual ~Schedule() = default;
  virtual Time delay(Point point, int pe) = 0;
  /// Returns one of `count` equally good places.
  virtual int choose(int count) = 0;
  /// Returns whether a stream's next kernel takes its places on SMs while the previous one still runs.
  virtual bool places_early() const { return false; }
  /// Returns whether a GEMM takes all SMs that it may have, even if it has fewer tiles.
  virtual bool fills_sms() const { return false; }
  /// Returns whether all streams of a PE share one hardware queue: work that cannot start holds up all later work.
  virtual bool has_one_queue() const { return false; }
  /// Returns whether a PE's kernels run one at a time, each to its end, in the order in which they were enqueued.
  /// Copies and signals of streams go on beside them.
  virtual bool runs_one_kernel() const { return false; }
};

}  // namespace tandem::sim
