#pragma once
/// The state that the parts of one simulated run share.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/topology.h"
#include "sim/device/polling.h"
#include "sim/engine/engine.h"
#include "sim/memory/memory.h"
#include "sim/memory/signals.h"
#include "sim/run/monitor.h"
#include "sim/run/observer.h"
#include "sim/transfer/network.h"
#include "tandem/machine.h"
#include "tandem/simulation.h"
#include "tandem/team.h"

namespace tandem::sim {

/// The machine's times and rates in the clock's units, converted once.
struct Costs {
  explicit Costs(const Machine& machine);

  Time local_latency, load_latency, flag, local_flag, kernel_gap, graph_gap, kernel, block_sync, copy_startup,
      nic_issue;
  Rate block_memory, block_reduce, block_store, block_load, queue;
};

struct Simulator;

/// The operations that one block, with all its roles, has in flight through NICs.
struct Outstanding {
  int operations = 0;
  std::vector<Actor*> waiting;  // in quiet
  int fences = 0;               // so far; messages after a fence arrive after those before it
};

/// Bytes, and perhaps a signal after them, that become visible at a PE at a time.
struct Delivery {
  void* target = nullptr;
  Buffer payload;
  bool has_signal = false;
  SignalUpdate signal;
  Message message = 0;  // of the signal, for the monitor
  Cause cause;
  std::shared_ptr<Outstanding> outstanding;  // of a NIC's message: notified of the delivery
  Simulator* simulator = nullptr;            // set by deliver
};

inline Delivery data_delivery(void* target, Buffer payload, const Cause& cause) {
  Delivery delivery;
  delivery.target = target;
  delivery.payload = std::move(payload);
  delivery.cause = cause;
  return delivery;
}
inline Delivery signal_delivery(const SignalUpdate& signal, const Cause& cause) {
  Delivery delivery;
  delivery.has_signal = true;
  delivery.signal = signal;
  delivery.cause = cause;
  return delivery;
}

/// One message through a NIC.
struct NicMessage {
  int from = 0;
  int to = 0;
  const void* source = nullptr;  // read when the last byte leaves, if there is no payload yet
  Size bytes = 0;
  bool after_all = false;  // a release: arrives after all earlier messages of the queue
  int fences = 0;          // of its block, before it
  Delivery delivery;
};

/// A NIC's queue pair: messages of one block to one PE, in order.
class QueuePair {
 public:
  QueuePair(Simulator& simulator, Rate rate) : simulator_(simulator), rate_(rate) {}
  void post(NicMessage message);

  std::uint64_t key = 0;  ///< Simulator's

 private:
  static void step(void* queue);
  void send_chunk();
  void finish(const Passage& last);
  /// Returns the arrival of the message under a schedule that may delay messages.
  Time held_up(const NicMessage& message, Time arrival);

  Simulator& simulator_;
  Rate rate_;
  std::deque<NicMessage> messages_;
  Size sent_ = 0;  // bytes of the first message
  bool busy_ = false;
  Time latest_ = 0;  // arrival so far
  Time floor_ = 0;   // arrival of everything that was sent before the last fence
  int fences_ = 0;
};

/// One SM's room and lanes.
struct Sm {
  int threads = 0;  // in use
  int blocks = 0;
  std::vector<bool> slots;  // lanes in use
};

class SimStream;

struct Pe {
  std::vector<Sm> sms;
  std::deque<std::function<bool()>> waiting_blocks;  // each tries to start a block; false where there is no room yet
  std::deque<SimStream*> queue;    // of each work that did not start, where a PE's streams share a hardware queue
  std::deque<SimStream*> kernels;  // of each kernel that did not end, where a PE's kernels run one at a time
  std::vector<bool> copy_engines;  // in use
  std::deque<std::function<void(int)>> waiting_copies;
  bool program_has_ended = false;
};

struct Simulator {
  Simulator(const Machine& machine_model, int num_pes, int pes_per_node, std::uint64_t seed, bool is_phantom,
            bool in_graph, Size heap_bytes, Size heap_limit_bytes, Observer* watching,
            const SimSeams& seams_to_use = {});

  const Machine machine;
  Topology topology;
  const Costs costs;
  const bool phantom;
  const bool graph;
  Observer* const observer;
  SimSeams seams;  // none once the run has failed: operations of destructors are not the program's
  /// The bytes that one step of a tile loop covers. Checks of small sizes use fewer, so that loops have several steps.
  Size tile_bytes = Size{64} << 10;
  DeviceKind device = DeviceKind::kSimulated;  ///< World::device()
  Memory memory;
  Network network;
  SignalBoard signals;
  std::vector<Pe> pes;
  /// Each function describes the wait of a stream; it returns an empty text for an idle stream.
  std::vector<std::function<std::string()>> streams;
  Polling polling;
  Engine engine;

  int num_pes() const { return static_cast<int>(pes.size()); }
  Team world_team(int pe) const;
  /// Returns the queue of a block to a PE, to which a message is then posted.
  QueuePair& queue(int from, int to, int block);
  /// Called for a queue without messages. Its past counts under a schedule alone, so another one may use it else.
  void retire(const QueuePair& queue);
  /// Makes payload and signal visible at `time`, or later if a signal follows earlier changes of its word by the same
  /// PE. Returns the arrival.
  Time deliver(Time time, Delivery delivery);
  Lane add_lane(int pe, LaneKind kind, const std::string& name) {
    return observer == nullptr ? kNoLane : observer->add_lane(pe, kind, name);
  }
  /// Returns the delay of an event under a schedule.
  Time late(Schedule::Point point, int pe) const {
    return seams.schedule == nullptr ? 0 : seams.schedule->delay(point, pe);
  }
  Fault fault(SyncOperation operation, Site site) const {
    return seams.faults == nullptr ? Fault::kNone : seams.faults->at(operation, site);
  }
  /// Returns whether `bytes` bytes from there are usable memory of one PE. Without a monitor they must lie within one
  /// buffer. A monitor reports accesses outside of buffers itself.
  bool is_usable(const void* address, Size bytes) const {
    return memory.holds(address, bytes) && (seams.monitor != nullptr || memory.within_buffer(address, bytes));
  }
  /// Returns the smaller value of the previous wait for the word, for a broken wait.
  Epoch value_before(const Signal* word, Epoch value);
  std::string describe_deadlock(const std::vector<const Actor*>& blocked) const;
  std::string describe_ended_programs() const;

 private:
  static void arrive(void* argument);
  void draw(const Occupation& chunk) const;

  std::unordered_map<std::uint64_t, std::unique_ptr<QueuePair>> queues_;  // by key; looked up, never iterated
  std::vector<std::unique_ptr<QueuePair>> idle_queues_;
  std::map<const Signal*, Epoch> awaited_;  // used if waits are broken
  std::deque<Delivery> deliveries_;         // never shrinks: addresses stay
  std::vector<Delivery*> free_deliveries_;  // unused ones of `deliveries_`
};

}  // namespace tandem::sim
