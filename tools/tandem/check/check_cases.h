#pragma once
/// What `tandem check` runs: every algorithm and operator in a few small configurations.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check/run_once.h"
#include "tandem/check.h"

namespace tandem::cli {

/// A program and what its result has to be: the same in every schedule.
class CheckProgram {
 public:
  virtual ~CheckProgram() = default;
  virtual void run(World& world) const = 0;
};

struct CheckCase {
  std::string op;         ///< "all_reduce"
  std::string algorithm;  ///< "ring"
  std::string variant;    ///< "large": what else tells it from others of the algorithm
  std::string machine = "h200x4";
  int pes = 2;
  int pes_per_node = 0;
  /// As CheckOptions has it; 0: its default.
  Size tile_bytes = 0;
  /// Another case has the same synchronisation: left out of the mutation suite.
  bool has_twin = false;
  std::function<std::unique_ptr<CheckProgram>()> make;

  /// "all_reduce.ring.4x2": 4 PEs, 2 a node.
  std::string name() const;
};

/// All cases for these numbers of PEs.
std::vector<CheckCase> check_cases(const std::vector<int>& pes);

// Its parts.
void add_collective_cases(std::vector<CheckCase>& cases, int pes);
void add_operator_cases(std::vector<CheckCase>& cases, int pes);
void add_layers_cases(std::vector<CheckCase>& cases, int pes);
void add_other_cases(std::vector<CheckCase>& cases, int pes);

/// The sizes of nodes that are tried: one node, and several.
std::vector<int> node_sizes(int pes);
/// The machine that has so many PEs in a node.
std::string machine_for(int pes);

/// Options of a check of this case, but for schedules, strategy and seed.
CheckOptions check_options(const CheckCase& one);
/// Runs a case's program once.
checker::Outcome run_case_once(const CheckProgram& program, const CheckOptions& options, std::uint64_t seed,
                               sim::Schedule& schedule, sim::Faults* faults, trace::Timeline* timeline = nullptr);
/// Runs it under these options; `faults` (null: none) say what is broken.
CheckResult run_check(const CheckCase& one, const CheckOptions& options, sim::Faults* faults = nullptr);

}  // namespace tandem::cli
