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

/// What a role does, in the hash over everything that happened.
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
  const std::string lane_name;  // empty where nobody draws
  const Lane lane;
  std::shared_ptr<Outstanding> outstanding;
  Thread thread = kNoThread;  // the monitor's
  bool is_role = false;       // of a block, not a whole one

  /// This role's share of its block's warps.
  int share = 1;
  int share_of = 1;
  /// When the last of what this role sent is visible at its destination.
  Time last_arrival = 0;
  /// A stream of loads pays the latency once, until the next synchronisation.
  bool streaming = false;
  Actor* waiting = nullptr;  // in await
  Looks looks;
  /// Of a block: the stream's next kernel may take its places, once all blocks have called it.
  std::function<void()> let_next_start;

  Engine& engine() const { return sim.engine; }
  Cause cause() const { return {pe, lane, sim.engine.now()}; }

  /// Moves bytes between two PEs' memories by this role's threads; returns when the role may go on, with the arrival
  /// time.
  Time move(int from, int to, Size bytes, Driver driver);
  /// Begins a load from this PE's own memory, or a store to it, behind those that are under way. What comes next waits
  /// for them, but for loads and stores over the link: a block's warps go their own ways, so that some use the memory
  /// while others use the link.
  /// `rate` is the block's: of a copy, or of values that pass its registers.
  void begin_local(Size bytes, Driver driver, Rate rate);
  /// Waits until they are done.
  void end_local();
  /// Waits until all loads and stores are done, those to peers too: a kernel ends with its last store.
  void end_accesses();
  /// Waits until a flag that `wait` describes is there.
  void await(SignalWait& wait);
  void await(PacketWait& wait);
  void wait_for_outstanding();
  /// Calls `do_it`, which only looks at a word: other roles need not wait for its effects.
  template <class Do>
  void look(const Do& do_it) {
    ++sim.polling.looking;
    do_it();
    --sim.polling.looking;
  }
  /// Notes that the role did something else than look.
  void acted() {
    looks.clear();
    sim.polling.idle_looks = 0;
  }
  /// Notes a look that found the same value again. Blocks for ever where nobody can change the value any more.
  void polled_unchanged(const Look& look, Site site);

  void report(Operation operation, Site site);
  void report_access(AccessKind kind, const void* address, Size bytes, Site site) const {
    if (sim.seams.monitor != nullptr) sim.seams.monitor->access(thread, {kind, address, bytes}, site);
  }
  Fault fault(SyncOperation operation, Site site) const { return sim.fault(operation, site); }
  /// When a store that could arrive at `arrival` does so: stores of a role keep their order.
  Time store_arrival(Time arrival);
  /// Under a schedule a signal or packet may be late: later fences, releases and quiets wait for its arrival.
  void order_after(Time arrival) {
    if (sim.seams.schedule != nullptr) last_arrival = std::max(last_arrival, arrival);
  }
  /// Under a schedule, waits until the own PE's earlier changes of these words have arrived.
  void see_own_changes(const Signal* words, Size n, Size stride) {
    if (sim.seams.schedule != nullptr)
      engine().sleep_until(std::max(engine().now(), sim.signals.own_changes(words, n, stride, pe)));
  }

  /// Whose memory `bytes` bytes are, to which this role puts, or which it signals. Throws InvalidArgument for none.
  int owner_of(const void* address, Size bytes, const char* operation, Site site) const;
  /// Whose memory `bytes` bytes are, which this role uses with loads or stores. Throws CheckFailed where it must not,
  /// InvalidArgument where they are not in one PE's memory.
  int reachable_pe(const void* address, Size bytes, const char* operation, Site site) const;
  /// For an array of which an operation touches a part: all of it has to lie within one buffer. Throws InvalidArgument,
  /// or tells the monitor.
  void require_array(const void* address, Size bytes, const char* operation, Site site) const;
  /// Throws InvalidArgument for data of a phantom simulation, of which signals, epochs and packets cannot be.
  void require_contents(const void* address, const char* operation, Site site) const;

 private:
  void require_held(const void* address, Size bytes, const char* operation, Site site) const;
  /// Hands the memory those chunks of local loads and stores whose turn has come.
  void advance_local();
  /// Sleeps while they go on.
  void sleep_beside_local(Time until);

  struct {
    Size left = 0;
    Size chunk = 0;
    Time ready = 0;  // for the next chunk, or when all is done
    Rate rate;
  } local_;
  /// Until when waiting for them has been reported: an operation that had to wait first begins there.
  Time local_drawn_until_ = 0;
};

}  // namespace tandem::sim
