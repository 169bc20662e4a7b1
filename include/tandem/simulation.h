#pragma once
/// Runs a host program on every PE of a simulated machine: deterministic, in virtual time, with real data.
///
///   Simulation simulation(load_machine("h200x4"), 4);
///   simulation.run([](World& world) { ... });          // the same program that runs on GPUs
///
/// There is one OS thread; every host program and every thread block is a fiber. The same seed gives the same run.

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
struct Folding;
struct Simulator;
}  // namespace sim

/// The interface of checkers and benchmarks to a run. Checkers are set by tandem/check.h. Null: none.
struct SimSeams {
  sim::Monitor* monitor = nullptr;    ///< sees each access
  sim::Faults* faults = nullptr;      ///< changes synchronising operations, for mutants
  sim::Schedule* schedule = nullptr;  ///< delays events
  /// Runs the kernels of some nodes, which stand for all nodes.
  const sim::Folding* folding = nullptr;
};

/// Options of a simulation.
struct SimOptions {
  /// Permutes the order of simultaneous events, where any order is legal.
  std::uint64_t seed = 1;
  /// Simulates timing and signals only. Data buffers have no contents, so that sizes beyond this computer's memory can
  /// be run.
  bool phantom = false;
  /// Kernels follow each other at the gap within a CUDA graph instead of that of ordinary launches.
  bool graph = true;
  /// World::device(). With kGpu, plans make the choices that they make on real GPUs, and refuse what no GPU kernel
  /// does.
  DeviceKind plan_for = DeviceKind::kSimulated;
  /// Splits one node into virtual nodes of so many PEs, between which loads and stores do not reach. 0: the machine's
  /// nodes.
  int pes_per_node = 0;
  /// Capacity of a PE's memory for data, which the system commits as it is touched. Under a limit on the process's
  /// address space (ulimit -v) it is reduced, so that all PEs together take half of the limit.
  Size heap_bytes = Size{16} << 30;
  /// Capacity after growth, if symmetric allocations need it; 0: no growth.
  Size heap_limit_bytes = 0;
  /// Records a timeline.
  bool record = false;
  SimSeams seams = {};  ///< set by checkers and benchmarks
};

/// A link or NIC ("nic 2 of node 1 out"), and the share of the whole time in which it moved bytes.
struct ResourceUse {
  std::string name;  ///< "nic 2 of node 1 out"
  double busy = 0;   ///< share of the time, from 0 to 1
};

/// One run of a host program on a simulated machine.
class Simulation {
 public:
  /// Throws InvalidArgument if the machine does not have `pes` PEs (two-level machines are filled in whole nodes) or
  /// has no figures. It also throws for options out of range.
  Simulation(const Machine& machine, int pes, const SimOptions& options = {});
  ~Simulation();

  /// Runs `program` on all PEs until all work is done. Rethrows the first error of any PE. Throws Deadlock with a
  /// report if nothing can continue. A simulation runs once; a second call throws InvalidArgument.
  void run(const std::function<void(World&)>& program);

  /// Returns the simulated time at the end.
  double time_us() const;
  /// Returns a hash over all events in order. Equal seeds give equal hashes on every build.
  std::uint64_t trace_hash() const;
  /// Returns the number of events of the run, which is the unit of the simulator's own cost.
  std::uint64_t events() const;
  /// Returns the use of each link and NIC, separately for each direction.
  std::vector<ResourceUse> resource_use() const;
  /// Returns the timeline; only with SimOptions::record.
  const trace::Timeline& timeline() const;
  /// These work also after a failed run.
  sim::Simulator& simulator() { return *simulator_; }

 private:
  class TimelineProfiler;
  struct Hosts;
  std::unique_ptr<TimelineProfiler> profiler_;
  std::unique_ptr<sim::Simulator> simulator_;
  std::unique_ptr<Hosts> hosts_;  // plans that outlive the run may name their buffers
  bool has_run_ = false;
};

}  // namespace tandem
