#pragma once
/// A block's role at run time: an actor with a place in its grid.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sim/simulator.h"
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
  /// When the last of this role's stores is visible at its destination.
  Time last_arrival = 0;
  /// A stream of loads pays the latency once, until the next synchronisation.
  bool streaming = false;
  Actor* waiting = nullptr;  // in await
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
  void begin_local(Size bytes, Driver driver);
  /// Waits until they are done.
  void end_local();
  /// Waits until a flag that `wait` describes is there.
  void await(SignalWait& wait);
  void await(PacketWait& wait);
  void wait_for_outstanding();

  void report(Operation operation, Site site) const;
  void report_access(AccessKind kind, const void* address, Size bytes, Site site) const {
    if (sim.seams.monitor != nullptr) sim.seams.monitor->access(thread, {kind, address, bytes}, site);
  }
  Fault fault(SyncOperation operation, Site site) const { return sim.fault(operation, site); }
  /// When a store that could arrive at `arrival` does so: stores of a role keep their order.
  Time store_arrival(Time arrival);

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
  } local_;
};

}  // namespace tandem::sim
