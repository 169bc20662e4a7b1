#include "tools/tandem/check/check_cases.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem::cli {

std::string CheckCase::name() const {
  const std::string place = pes_per_node == 0 ? fmt::format("{}", pes) : fmt::format("{}x{}", pes, pes_per_node);
  return fmt::format("{}.{}.{}{}{}", op, algorithm, place, variant.empty() ? "" : ".", variant);
}

std::vector<CheckCase> check_cases(const std::vector<int>& pes) {
  std::vector<CheckCase> cases;
  for (const int n : pes) {
    add_collective_cases(cases, n);
    add_norm_cases(cases, n);
    add_heads_cases(cases, n);
    add_experts_cases(cases, n);
    add_exchange_cases(cases, n);
    add_operator_cases(cases, n);
    add_layers_cases(cases, n);
    add_other_cases(cases, n);
  }
  return cases;
}

std::vector<int> node_sizes(int pes) {
  if (pes == 1) return {0};
  for (int size = pes / 2; size > 1; --size)
    if (pes % size == 0) return {0, size};
  return {0, 1};
}

std::string machine_for(int pes) { return pes <= 4 ? "h200x4" : "h200x8"; }

CheckOptions check_options(const CheckCase& one) {
  CheckOptions options;
  options.machine = load_machine(one.machine);
  options.pes = one.pes;
  options.pes_per_node = one.pes_per_node;
  if (one.tile_bytes > 0) options.tile_bytes = one.tile_bytes;
  options.one_kernel_at_a_time = one.one_kernel_at_a_time;
  options.replay = fmt::format("tandem check {} --case {}", one.op, one.name());
  return options;
}

checker::Outcome run_case_once(const CheckProgram& program, const CheckOptions& options, std::uint64_t seed,
                               sim::Schedule& schedule, sim::Faults* faults, trace::Timeline* timeline) {
  return checker::run_once([&](World& world) { program.run(world); }, options, seed, schedule, faults, timeline);
}

CheckResult run_check(const CheckCase& one, const CheckOptions& options, sim::Faults* faults) {
  const std::unique_ptr<CheckProgram> program = one.make();
  return checker::check_broken([&](World& world) { program->run(world); }, options, faults);
}

}  // namespace tandem::cli
