#pragma once
/// Runs one collective in the simulator and counts wrong elements.

#include <cstdint>
#include <ostream>
#include <string>

#include "tandem/collectives.h"
#include "tandem/simulation.h"

namespace tandem::test {

struct CollectiveCase {
  Collective collective = Collective::kAllReduce;
  std::string algorithm = {};  ///< empty: the default
  std::string machine = "h200x8";
  int nodes = 1;  ///< real ones where the machine has several, else one host split into virtual nodes
  int pes = 4;    ///< over all nodes; a machine with fewer PEs a node is enlarged
  Size count = 1000;
  DType type = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  /// The source of the factor of ReduceOp::kPremulSum.
  enum class Scale { kOfPlan, kOfRun, kOfRunInMemory } scale = Scale::kOfPlan;
  int root = 0;
  bool in_place = false;
  /// Memory that peers do not reach; of in-place calls both or none.
  bool local_in = false, local_out = false;
  Size staging_bytes = 0;  ///< of local buffers; 0: the plan's own
  /// False: small integers, so that every result is exact in every type and order. True: floats are normally
  /// distributed and compared with an f64 reference; integers take all values, and wrap.
  bool random = false;
  std::uint64_t seed = 1;      ///< of data and schedule
  std::uint64_t schedule = 0;  ///< seed of the schedule alone; 0: as `seed`
  int calls = 4;  ///< enqueued back to back, each with data of its own; every other one has a third of `count`
  std::uint64_t earlier_calls = 0;  ///< that the plan's counters say it has made before
  int blocks = 0;                   ///< 0: the plan's choice
  /// A strided part of the world that runs the collective; size 0: the world.
  int team_first = 0, team_stride = 1, team_size = 0;
};

/// "all_reduce ring on 2x4 of h100x8-rail, 1000 x bf16, sum, in-place, seed 3".
std::string describe(const CollectiveCase& c);
std::ostream& operator<<(std::ostream& out, const CollectiveCase& c);

struct CollectiveResult {
  Size checked = 0;  ///< elements of results
  /// Wrong elements: results, inputs that changed, memory around the buffers, and elements that differ between two PEs
  /// although they should not.
  Size wrong = 0;
  std::string first_wrong = {};
  std::string algorithm = {};   ///< that ran
  std::uint64_t data_hash = 0;  ///< of the results of all PEs
  std::uint64_t trace_hash = 0;
  double time_us = 0;
};

/// Throws what the simulation throws.
CollectiveResult check_collective(const CollectiveCase& c);

}  // namespace tandem::test
