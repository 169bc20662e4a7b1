// `tandem tune`: measures all algorithms of collectives, and writes the fastest into a selection table.
#include "tools/tandem/tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "tools/tandem/host/commands.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/run_collective.h"
#include "tools/tandem/tune/expert_tune.h"
#include "tools/tandem/tune/layer_tune.h"
#include "tools/tandem/tune/operator_tune.h"
#include "tools/tandem/tune/sweep.h"
#include "trace/timeline/output_file.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kShownAlgorithms = 4;

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

Collective collective_of(const std::string& text) {
  const Subject subject = parse_subject(text);
  if (const auto* const collective = std::get_if<Collective>(&subject)) return *collective;
  throw InvalidArgument(fmt::format("OP: '{}' given, operators and collectives are not tuned in one run", text));
}

/// Returns the candidates that GPUs run, too, since a table is meant for them, or only those of the algorithm `only`.
std::vector<tune::Candidate> simulated_candidates(Collective collective, bool one_node, const std::string& only) {
  std::vector<tune::Candidate> all = tune::candidates(collective, one_node, only);
  if (only.empty()) std::erase_if(all, [](const tune::Candidate& one) { return one.algorithm == "multimem"; });
  return all;
}

/// Times in the simulator do not depend on data, so none is moved.
Sweep tune_in_simulator(const TuneOptions& a, Collective collective) {
  Setup setup = make_setup(a);
  setup.options.phantom = true;
  TuneOptions one = a;
  one.subject = name(collective);
  CollectiveRun run = make_collective_run(collective, one, setup.pes);
  const int per_node = setup.options.pes_per_node > 0 ? setup.options.pes_per_node : setup.machine.pes_per_node;
  Sweep sweep;
  sweep.machine = setup.machine.name;
  sweep.processor = setup.machine.processor;
  sweep.group.one_node = setup.pes <= per_node;
  sweep.group.pes = setup.pes;
  tune::Contest contest(simulated_candidates(collective, sweep.group.one_node, a.algorithm.value_or("")));
  note_cost(run, setup);
  Pictures none;
  for (const Size bytes : bench_sizes(a)) {
    std::vector<tune::Measured> all;
    for (const tune::Candidate& candidate : contest.at(bytes)) {
      run.options.algorithm = candidate.algorithm;
      run.options.blocks = candidate.blocks;
      try {
        Progress progress(parts_of(run));
        const Result result = run_collective(run, setup, bytes, none, progress);
        all.push_back({bytes, candidate.algorithm, candidate.blocks, result.time_us});
      } catch (const Unsupported&) {  // a machine without multicast, a grid that does not fit
      } catch (const Deadlock&) {     // more blocks than are resident
      }
    }
    contest.add(bytes, all);
    print_sweep_line(a, name(collective), bytes, all);
  }
  sweep.measured = contest.measured();
  sweep.group.source =
      sweep_source(a.command_line, fmt::format("predicted with the machine model {}", setup.machine.name));
  return sweep;
}

/// Returns the existing table of --out, or a new one.
tune::SelectionTable open_table(const TuneOptions& a, const Sweep& sweep) {
  const std::string& machine = sweep.machine;
  tune::SelectionTable table;
  if (std::filesystem::exists(a.out)) table = tune::load_selection(a.out);
  if (table.name.empty()) {
    table.name = std::filesystem::path(a.out).stem().string();
    table.description = fmt::format("Algorithms of collectives on {}, {} by tandem tune", machine,
                                    a.in_real_time() ? "measured" : "predicted");
    table.machines = {machine};
    table.processor = sweep.processor;
  }
  if (table.machines != std::vector{machine})
    throw InvalidArgument(
        fmt::format("--out: {} is a table of {}, this is {}", a.out, fmt::join(table.machines, ", "), machine));
  return table;
}

nlohmann::ordered_json to_json(const Sweep& sweep, bool predicted) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const tune::Measured& one : sweep.measured)
    rows.push_back({{"op", tune::op_name(sweep.group)},
                    {"bytes", one.bytes},
                    {"pes", sweep.group.pes},
                    {"algorithm", one.algorithm},
                    {"blocks", one.blocks},
                    {"predicted", predicted},
                    {"tandem_us", one.us}});
  return rows;
}

}  // namespace

std::string sweep_source(const std::string& command_line, const std::string& machine) {
  return fmt::format("{}; {}; {}", command_line, today(), machine);
}

void print_sweep_line(const Arguments& a, const std::string& op, Size bytes, std::vector<tune::Measured> all) {
  if (a.json_to_stdout()) return;
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.us < y.us; });
  std::string text = fmt::format("{:<15}{:>12}", op, bytes);
  for (std::size_t i = 0; i < std::min(kShownAlgorithms, all.size()); ++i)
    text += fmt::format("  {}{} {:.2f}", all[i].algorithm, all[i].blocks > 0 ? fmt::format("/{}", all[i].blocks) : "",
                        all[i].us);
  fmt::print("{}  ({} tried, {})\n", text, all.size(), a.in_real_time() ? "measured" : "predicted");
  flush_output();
}

int execute(const TuneOptions& a) {
  std::vector<Operator> operators;
  for (const std::string& text : a.subjects)
    if (const Subject subject = parse_subject(text); std::holds_alternative<Operator>(subject))
      operators.push_back(std::get<Operator>(subject));
  if (operators.size() == a.subjects.size()) return tune_operators(a, operators);
  if (a.most)
    throw InvalidArgument("--most: does not apply to collectives, where tune drops slow candidates by itself");
  if (names_expert_calls(a)) return tune_expert_calls(a);
  const bool are_layers = names_tuned_layers(a);
  std::vector<Collective> collectives;
  for (const std::string& text : a.subjects)
    if (!are_layers) collectives.push_back(collective_of(text));
  for (const Collective collective : collectives)
    if (tune::candidates(collective, true, a.algorithm.value_or("")).empty())
      throw InvalidArgument(
          fmt::format("--algo: '{}' given, {} has no such algorithm", a.algorithm.value_or(""), name(collective)));
  check_json_file(a);
  check_output("--out", a.out);
  check_output_kind(a.out, TuneOutput::kSelection);
  if (std::filesystem::exists(a.out)) tune::load_selection(a.out);  // rejects a damaged file before the work
  std::vector<Sweep> sweeps;
  if (are_layers) {
    sweeps = tune_layers(a);
    if (sweeps.empty()) return kRight;
  } else if (a.in_real_time()) {
    sweeps = a.on_gpus() ? tune_on_gpus(a) : tune_on_host(a);
    if (sweeps.empty()) return kRight;
  } else {
    for (const Collective collective : collectives) sweeps.push_back(tune_in_simulator(a, collective));
  }
  tune::SelectionTable table = open_table(a, sweeps.front());
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    Sweep& sweep = sweeps[i];
    if (!are_layers) sweep.group.collective = collectives[i];
    // Collectives that do not reduce move bytes of any type.
    if (!are_layers && reduces(collectives[i]))
      sweep.group.element_bytes = static_cast<int>(size_of(dtype_option(a, DType::kF32)));
    if (sweep.measured.empty())
      throw Unsupported(fmt::format("{}: no algorithm ran, so there is nothing to choose", tune::op_name(sweep.group)));
    tune::put(table, tune::with_choices(sweep.group, sweep.measured));
    for (auto& row : to_json(sweep, !a.in_real_time())) rows.push_back(row);
  }
  trace::write_file(a.out, [&](std::ostream& out) { out << tune::to_text(table); });
  write_json(a, rows);
  if (!a.json_to_stdout()) std::cout << "wrote " << a.out << '\n';
  return kRight;
}

}  // namespace tandem::cli
