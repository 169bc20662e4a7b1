#pragma once
/// A block's role at run time: an actor with a place in its grid.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sim/run/simulator.h"
#include "tandem/team.h"

namespace tandem::sim {

/// The codes of a role's operations in the trace hash.
enum TraceCode : std::uint32_t {
  kTraceRead = 1,
  kTraceWrite,
  kTracePut,
  kTraceGet,
  kTraceSignal,
  kTraceWait,
  kTraceAtomic
};

class Role {
 public:
  Role(Simulator& simulator, const Team& its_team, int world_pe, int block, int blocks, int its_warps,
       std::string drawn_on)
      : sim(simulator),
        team(its_team),
        pe(world_pe),
        index(block),
        count(blocks),
        warps(its_warps),
        lane_name(std::move(drawn_on)),
        lane(simulator.add_lane(pe, LaneKind::kSm, lane_name)),
        outstanding(std::make_shared<Outstanding>()) {}

  Simulator& sim;
  const Team team;
  const int pe;  // of the world
  const int index;
  const int count;
  const int warps;
  const std::string lane_name;  // empty if no timeline is drawn
  const Lane lane;
  std::shared_ptr<Outstanding> outstanding;
  Thread thread = kNoThread;  // the monitor's
  bool is_role = false;       // a role of a block, not the whole block

  /// This role's share of its block's warps.
  int share = 1;
  int share_of = 1;
  /// The time when everything that this role sent is visible at its destination.
  Time last_arrival = 0;
  /// A stream of loads pays the latency once, until the next synchronisation.
  bool streaming = false;
  Actor* waiting = nullptr;  // in await
  Looks looks;
  /// A block calls it to let the stream's next kernel take its places, which happens once all blocks have called it.
  std::function<void()> let_next_start;

  Engine& engine() const { return sim.engine; }
  Cause cause() const { return {pe, lane, sim.engine.now()}; }

  /// Moves bytes between two PEs' memories by this role's threads; returns when the role may go on, with the arrival
  /// time.
  Time move(int from, int to, Size bytes, Driver driver);
  /// Starts a load from this PE's own memory, or a store to it, behind those in flight. Later operations wait for them,
  /// except loads and stores over the link: some of a block's warps use the memory while others use the link. `rate` is
  /// the block's rate for a copy, or for values that pass through its registers.
  void begin_local(Size bytes, Driver driver, Rate rate);
  /// Waits until the local loads and stores are done.
  void end_local();
  /// Waits until all loads and stores are done, including stores to peers: a kernel ends with its last store.
  void end_accesses();
  /// Blocks until the signals or packets that `wait` describes have arrived.
  void await(SignalWait& wait);
  void await(PacketWait& wait);
  void wait_for_outstanding();
  /// Sends a message of this block through its NIC.
  void post(NicMessage message);
  /// Calls `do_it`, which only looks at a word: other roles need not wait for its effects.
  template <class Do>
  void look(const Do& do_it) {
    ++sim.polling.looking;
    do_it();
    --sim.polling.looking;
  }
  /// Notes an operation other than a look.
  void acted() {
    looks.clear();
    sim.polling.idle_looks = 0;
  }
  /// Notes a look that found the same value again. Blocks forever if no actor can change the value any more.
  void polled_unchanged(const Look& look, Site site);

  void report(Operation operation, Site site);
  void report_access(AccessKind kind, const void* address, Size bytes, Site site) const {
    if (sim.seams.monitor != nullptr) sim.seams.monitor->access(thread, {kind, address, bytes}, site);
  }
  Fault fault(SyncOperation operation, Site site) const { return sim.fault(operation, site); }
  /// Returns the arrival of a store that could arrive at `arrival`: stores of a role keep their order.
  Time store_arrival(Time arrival);
  /// Under a schedule a signal or packet may be late: later fences, releases and quiets wait for its arrival.
  void order_after(Time arrival) {
    if (sim.seams.schedule != nullptr) last_arrival = std::max(last_arrival, arrival);
  }
  /// Under a schedule, waits until earlier changes of these words by this PE have arrived.
  void see_own_changes(const Signal* words, Size n, Size stride) {
    if (sim.seams.schedule != nullptr)
      engine().sleep_until(std::max(engine().now(), sim.signals.own_changes(words, n, stride, pe)));
  }

  /// Returns the PE whose memory holds the bytes that this role puts to or signals. Throws InvalidArgument if none
  /// does.
  int owner_of(const void* address, Size bytes, const char* operation, Site site) const;
  /// Returns the PE whose memory holds the bytes that this role loads or stores. Throws CheckFailed if it must not, and
  /// InvalidArgument if they are not in one PE's memory.
  int reachable_pe(const void* address, Size bytes, const char* operation, Site site) const;
  /// Requires that an array lies within one buffer, even if an operation touches only a part of it. Throws
  /// InvalidArgument, or notifies the monitor.
  void require_array(const void* address, Size bytes, const char* operation, Site site) const;
  /// Throws InvalidArgument for data of a phantom simulation, which cannot hold signals, epochs or packets.
  void require_contents(const void* address, const char* operation, Site site) const;

 private:
  void require_held(const void* address, Size bytes, const char* operation, Site site) const;
  /// Passes the chunks of local loads and stores that are due to the memory.
  void advance_local();
  /// Sleeps while local loads and stores go on.
  void sleep_beside_local(Time until);

  struct {
    Size left = 0;
    Size chunk = 0;
    Time ready = 0;  // the time of the next chunk, or of the end
    Rate rate;
  } local_;
  /// The time up to which waits for local accesses are reported. An operation that had to wait first starts there.
  Time local_drawn_until_ = 0;
};

}  // namespace tandem::sim
