#pragma once
/// Grids on SMs: blocks wait for room, run, and free their room.

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
  int room = 512;             ///< threads of an SM that a block occupies
  bool keeps_places = false;  ///< whether it keeps its places until its last block ends, as a GEMM of many tiles does
  int idle_blocks = 0;        ///< further blocks, which occupy places until the last block ends and do nothing
  bool epoch_first = false;   ///< whether its blocks touch no memory before next_epoch
  Time startup = 0;           ///< the time from the launch until its blocks run
  Thread stream = kNoThread;  ///< the monitor's
  /// Calls Role::let_next_start.
  std::function<void(Role&)> body;
  /// Called when every block has let the stream's next kernel take its places.
  std::function<void()> on_let_next;
  /// Called with the lane on which the last block ran.
  std::function<void(Lane)> on_finish;
};

/// A grid. A block starts when an SM has enough free threads; other blocks wait until running ones end.
class Kernel : public std::enable_shared_from_this<Kernel> {
 public:
  Kernel(Simulator& simulator, KernelRequest request);

  /// Takes places on SMs, or queues blocks for them. No block runs before `begin`. Programmatic dependent launch does
  /// this while the previous kernel still runs.
  void place();
  /// Starts the grid now. `cause` is the operation that allowed it, for timelines.
  void begin(const Cause& cause);
  /// Returns whether it has places, or waits for them, and has not started.
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
  std::vector<PlacedBlock> placed_;  // before it starts
  std::vector<Placement> idle_;      // places of idle blocks
  int left_ = 0;
  int lets_next_ = 0;  // blocks
  KernelId id_ = 0;    // the monitor's
};

}  // namespace tandem::sim
