#pragma once
/// Grids on SMs: blocks wait for room, run, and give it back.

#include <functional>
#include <memory>
#include <string>

#include "sim/role.h"

namespace tandem::sim {

struct KernelRequest {
  std::string name;
  int pe = 0;
  Team team;
  int blocks = 1;
  int threads = 512;
  Thread stream = kNoThread;  ///< the monitor's
  std::function<void(Role&)> body;
  /// What let the grid start, for timelines.
  Cause cause;
  /// Told where the last block ran.
  std::function<void(Lane)> on_finish;
};

/// Starts a grid now. A block starts when an SM has its threads free; blocks beyond that wait for others to end.
void run_kernel(Simulator& simulator, KernelRequest request);

}  // namespace tandem::sim
