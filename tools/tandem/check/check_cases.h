#pragma once
/// The cases of `tandem check`: every algorithm and operator in a few small configurations.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check/run_once.h"
#include "tandem/check.h"

namespace tandem::cli {

/// A program with its expected result, which is the same in every schedule.
class CheckProgram {
 public:
  virtual ~CheckProgram() = default;
  virtual void run(World& world) const = 0;
};

struct CheckCase {
  std::string op;         ///< "all_reduce"
  std::string algorithm;  ///< "ring"
  std::string variant;    ///< "large": distinguishes cases of one algorithm
  std::string machine = "h200x4";
  int pes = 2;
  int pes_per_node = 0;
  /// See CheckOptions; 0: its default.
  Size tile_bytes = 0;
  /// See CheckOptions.
  bool one_kernel_at_a_time = true;
  /// Another case has the same synchronisation, so the mutation suite leaves this one out.
  bool has_twin = false;
  std::function<std::unique_ptr<CheckProgram>()> make;

  /// Returns "all_reduce.ring.4x2": 4 PEs, 2 in each node.
  std::string name() const;
};

/// Returns all cases for these numbers of PEs.
std::vector<CheckCase> check_cases(const std::vector<int>& pes);

// The parts of check_cases.
void add_collective_cases(std::vector<CheckCase>& cases, int pes);
void add_operator_cases(std::vector<CheckCase>& cases, int pes);
void add_layers_cases(std::vector<CheckCase>& cases, int pes);
void add_exchange_cases(std::vector<CheckCase>& cases, int pes);
void add_norm_cases(std::vector<CheckCase>& cases, int pes);
void add_heads_cases(std::vector<CheckCase>& cases, int pes);
void add_experts_cases(std::vector<CheckCase>& cases, int pes);
void add_other_cases(std::vector<CheckCase>& cases, int pes);

/// Returns the node sizes to try: one node, and several.
std::vector<int> node_sizes(int pes);
/// Returns the machine with so many PEs in a node.
std::string machine_for(int pes);

/// Returns the options of a check of this case, without schedules, strategy and seed.
CheckOptions check_options(const CheckCase& one);
/// Runs a case's program once.
checker::Outcome run_case_once(const CheckProgram& program, const CheckOptions& options, std::uint64_t seed,
                               sim::Schedule& schedule, sim::Faults* faults, trace::Timeline* timeline = nullptr);
/// Runs it under these options. `faults` describes the injected fault; null: none.
CheckResult run_check(const CheckCase& one, const CheckOptions& options, sim::Faults* faults = nullptr);

}  // namespace tandem::cli
