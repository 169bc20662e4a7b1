#pragma once
/// Grids on SMs: blocks wait for room, run, and give it back.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/role.h"

namespace tandem::sim {

struct KernelRequest {
  std::string name;
  int pe = 0;
  Team team;
  int blocks = 1;
  int threads = 512;
  int room = 512;             ///< threads of an SM that a block keeps from others
  bool keeps_places = false;  ///< until its last block ends, as those with many tiles do
  int idle_blocks = 0;        ///< more of them, which take places until the last block ends and do nothing
  bool epoch_first = false;   ///< its blocks touch no memory before next_epoch
  Time startup = 0;           ///< from the launch until its blocks run
  Thread stream = kNoThread;  ///< the monitor's
  /// Calls Role::let_next_start.
  std::function<void(Role&)> body;
  /// Every block let the stream's next kernel take its places.
  std::function<void()> on_let_next;
  /// Told where the last block ran.
  std::function<void(Lane)> on_finish;
};

/// A grid. A block starts when an SM has its threads free; blocks beyond that wait for others to end.
class Kernel : public std::enable_shared_from_this<Kernel> {
 public:
  Kernel(Simulator& simulator, KernelRequest request) : sim_(simulator), request_(std::move(request)) {}

  /// Takes places on SMs, or joins those that wait for them. Nothing runs before `begin`; that is what programmatic
  /// dependent launch does while the kernel before still runs.
  void place();
  /// Starts the grid now. `cause`: what let it, for timelines.
  void begin(const Cause& cause);
  /// Has places, or waits for them, and may not begin yet.
  bool holds_places() const { return is_placed_ && !has_begun_; }

 private:
  struct Placement {
    int sm = -1;
    int slot = 0;
  };
  struct PlacedBlock {
    int block;
    Placement at;
  };

  Monitor* monitor() const { return sim_.seams.monitor; }
  Pe& device() const { return sim_.pes[static_cast<std::size_t>(request_.pe)]; }
  bool has_room(const Sm& sm) const;
  Placement take_room();
  int another_place(int best) const;
  void give_back(const Placement& at);
  bool try_place(int block);
  void start(const PlacedBlock& placed);
  void finish_block(const Placement& at, Lane lane, Time begin, Thread thread);

  Simulator& sim_;
  KernelRequest request_;
  Cause cause_;
  bool is_placed_ = false;
  bool has_begun_ = false;
  std::vector<PlacedBlock> placed_;  // before it begins
  std::vector<Placement> idle_;      // places of idle blocks
  int left_ = 0;
  int lets_next_ = 0;  // blocks
  KernelId id_ = 0;    // the monitor's
};

}  // namespace tandem::sim
