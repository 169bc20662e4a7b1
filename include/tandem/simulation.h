#pragma once
/// Runs a host program on every PE of a simulated machine: deterministic, in virtual time, with the real bytes.
///
///   Simulation simulation(load_machine("h200x4"), 4);
///   simulation.run([](World& world) { ... });          // the same program that runs on GPUs
///
/// One OS thread; every host program and every thread block is a fiber. The same seed gives the same run.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/machine.h"
#include "tandem/world.h"

namespace tandem {

namespace trace {
class Timeline;
}
namespace sim {
class Observer;
class Monitor;
class Faults;
class Schedule;
struct Simulator;
}  // namespace sim

/// Where checkers look into a run: see tandem/check.h, which sets them. Null: nobody looks.
struct SimSeams {
  sim::Monitor* monitor = nullptr;    ///< sees each access
  sim::Faults* faults = nullptr;      ///< changes synchronising operations, for mutants
  sim::Schedule* schedule = nullptr;  ///< delays events
};

/// Options of a simulation.
struct SimOptions {
  /// Permutes what may legally happen in another order: ties between simultaneous events.
  std::uint64_t seed = 1;
  /// Timing and signals only: data buffers have no contents, so that sizes that do not fit can be run.
  bool phantom = false;
  /// Kernels follow each other at the gap within a CUDA graph, not at that of ordinary launches.
  bool graph = true;
  /// Splits one node into virtual nodes of so many PEs, between which loads and stores do not reach; 0: as the machine
  /// is.
  int pes_per_node = 0;
  /// Capacity of a PE's memory for data; committed by the system as it is touched. Under a limit on the process's
  /// address space (ulimit -v) it is less, so that all PEs together take half of that.
  Size heap_bytes = Size{16} << 30;
  /// What a PE's memory for data may grow to, where symmetric allocations need it; 0: it does not grow.
  Size heap_limit_bytes = 0;
  /// Records a timeline.
  bool record = false;
  SimSeams seams = {};  ///< set by the checker
};

/// A link or NIC, and the share of the whole time in which it was moving bytes.
struct ResourceUse {
  std::string name;  ///< "nic 2 of node 1 out"
  double busy = 0;   ///< share of the time, from 0 to 1
};

/// One run of a host program on a simulated machine.
class Simulation {
 public:
  /// Throws InvalidArgument where the machine does not have `pes` PEs (two-level machines are filled in whole nodes),
  /// or has no figures, and for options out of range.
  Simulation(const Machine& machine, int pes, const SimOptions& options = {});
  ~Simulation();

  /// Runs `program` on all PEs until everything is done. Rethrows the first error of any PE; throws Deadlock with a
  /// report where nothing can go on. A simulation runs once: InvalidArgument for a second time.
  void run(const std::function<void(World&)>& program);

  /// Simulated time at the end.
  double time_us() const;
  /// Hash over everything that happened, in order; equal for equal seeds on every build.
  std::uint64_t trace_hash() const;
  /// Events that the run took: the unit of the simulator's own cost.
  std::uint64_t events() const;
  /// How busy each link and NIC was, each direction by itself.
  std::vector<ResourceUse> resource_use() const;
  /// What happened; only with SimOptions::record.
  const trace::Timeline& timeline() const;
  /// Also after a run that failed.
  sim::Simulator& simulator() { return *simulator_; }

 private:
  class Recorder;
  struct Hosts;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<sim::Simulator> simulator_;
  std::unique_ptr<Hosts> hosts_;  // plans that outlive the run may name what is theirs
  bool has_run_ = false;
};

}  // namespace tandem
