#include "tools/tandem/tune/operator_tune.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "tools/tandem/host/commands.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/run_operator.h"
#include "tools/tandem/tune/tune.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kShownTrials = 8;

/// Times in the simulator do not depend on data, so none is moved.
TuneSetup simulated(const Setup& setup) {
  TuneSetup tune;
  tune.in_world = [setup](const std::function<void(World&)>& program) {
    SimOptions options = setup.options;
    options.phantom = true;
    options.graph = true;
    options.heap_bytes = addresses_for(Size{1} << 40, setup.pes);
    Simulation(setup.machine, setup.pes, options).run(program);
  };
  tune.calls = 1;
  return tune;
}

void print_trials(Operator op, const OperatorTuning& tuning, bool predicted) {
  fmt::print("{} {}x{}x{} {} on {} PEs of {}: {} configurations, times are {}, sequential {:.1f} us\n", name(op),
             tuning.key.m, tuning.key.n, tuning.key.k, name(tuning.key.type), tuning.key.pes,
             printable(tuning.key.machine), tuning.trials.size(), predicted ? "predicted" : "measured",
             tuning.sequential_us);
  for (std::size_t i = 0; i < std::min(kShownTrials, tuning.trials.size()); ++i)
    if (tuning.trials[i].us > 0)
      fmt::print("{:>10.1f} us  {}\n", tuning.trials[i].us, describe(op, tuning.trials[i].options));
  for (const OperatorTrial& trial : tuning.trials)
    if (!trial.failure.empty()) fmt::print("   dropped     {}: {}\n", describe(op, trial.options), trial.failure);
}

nlohmann::ordered_json to_json(Operator op, const OperatorTuning& tuning, bool predicted) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OperatorTrial& trial : tuning.trials)
    rows.push_back({{"op", name(op)},
                    {"m", tuning.key.m},
                    {"n", tuning.key.n},
                    {"k", tuning.key.k},
                    {"pes", tuning.key.pes},
                    {"configuration", describe(op, trial.options)},
                    {"predicted", predicted},
                    {"tandem_us", trial.us},
                    {"failure", trial.failure}});
  return rows;
}

}  // namespace

int tune_operators(const TuneOptions& a, const std::vector<Operator>& operators) {
  check_json_file(a);
  check_output("--out", a.out);
  check_output_kind(a.out, TuneOutput::kOperatorCache);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Operator op : operators) {
    TuneOptions one = a;
    one.subject = name(op);
    refuse_sweep_options(one);
    const OperatorRun run = make_operator_run(op, one);
    const auto [setup, speaks] = a.on_gpus()   ? operator_tune_on_gpus(a, run)
                                 : a.on_host() ? operator_tune_on_host(a, run)
                                               : OperatorTuneSetup{simulated(make_setup(a))};
    TuneSetup tune = setup;
    tune.bias = run.bias;
    tune.scales = run.scales;
    const OperatorTuning tuning = tune_operator(op, run.options, tune);
    if (!speaks) continue;
    if (!a.json_to_stdout()) print_trials(op, tuning, !a.in_real_time());
    store_tuned(a.out, tuning.entry());
    for (auto& row : to_json(op, tuning, !a.in_real_time())) rows.push_back(row);
  }
  if (rows.empty()) return kRight;  // another process writes
  write_json(a, rows);
  if (!a.json_to_stdout()) fmt::print("wrote {}; {}={} lets plans take it\n", a.out, kOperatorCacheVariable, a.out);
  return kRight;
}

}  // namespace tandem::cli
