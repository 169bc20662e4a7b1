// Makes the selection tables of machines that nobody measured: `selection_tables FOLDER [TABLE ...]` sweeps all
// collectives on the tables' machine models in the simulator, and writes FOLDER/TABLE.json for each (no TABLE: all).
// Groups that the file has already stay: remove it first to make all of them anew.
//
//   build/release/bench/selection_tables machines/selection

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

#include "best_choice.h"
#include "tools/tandem/options/parallel.h"

using namespace tandem;

namespace {

constexpr Size kFirstBytes = 1024, kLastBytes = Size{1} << 30;

struct Sweep {
  const char* machine;
  std::vector<int> pes;
  Size step = 4;  ///< from one size to the next
  std::uint64_t most_events = 3'000'000;
};

struct Table {
  tune::SelectionTable head;
  std::vector<Sweep> sweeps;
};

/// One table for each fabric; its machines have figures near those of the models that are swept.
const std::vector<Table>& tables() {
  static const std::vector<Table> all{
      {{"predicted-nvlink",
        "GPUs of one NVLink switch, and nodes of such GPUs with a NIC for each, as the simulator predicts",
        {"H200", "GH200", "H20", "H100", "H800"},
        {},
        Fabric::kSwitched,
        true},
       {{"h200x8", {8}}, {"h100x8-rail", {16}}, {"h200x8", {2, 4}, 8}}},
      {{"predicted-mesh",
        "GPUs with a link for each pair, as the simulator predicts",
        {"MI300X", "MI300A", "MI325X"},
        {},
        Fabric::kFullMesh,
        true},
       {{"mi300x8", {2, 4, 8}}}},
      {{"predicted-pcie",
        "GPUs on PCIe, of one socket and of two, as the simulator predicts",
        {"pcie", "RTX PRO 6000", "RTX 6000", "L40", "L40S", "L20", "L4", "A40", "A10", "H100 PCIe", "A100 80GB PCIe",
         "A100-PCIE-40GB"},
        {},
        Fabric::kPcie,
        true},
       {{"pcie-2numa", {2, 4, 8}}}},
  };
  return all;
}

/// One group of a table.
struct Task {
  const Sweep* sweep;
  Collective collective;
  int pes;
};

bool has_group(const tune::SelectionTable& table, const Task& task) {
  const bool one_node = load_machine(task.sweep->machine).max_nodes == 1;
  return std::any_of(table.groups.begin(), table.groups.end(), [&](const tune::Group& group) {
    return group.collective == task.collective && group.pes == task.pes && group.one_node == one_node;
  });
}

/// Between nodes every block multiplies the messages: the fewest within 3 % of an algorithm's other numbers are enough.
void keep_the_thrifty(std::vector<tune::Measured>& tried) {
  constexpr double level = 1.03;
  const std::vector<tune::Measured> all = tried;
  std::erase_if(tried, [&](const tune::Measured& one) {
    return std::any_of(all.begin(), all.end(), [&](const tune::Measured& other) {
      return other.algorithm == one.algorithm && other.blocks < one.blocks && other.us <= level * one.us;
    });
  });
}

/// Runs of one choice as one.
void join_equal(tune::Group& group) {
  std::vector<tune::SizeChoice> joined;
  for (const tune::SizeChoice& choice : group.sizes) {
    if (!joined.empty() && joined.back().algorithm == choice.algorithm && joined.back().blocks == choice.blocks)
      joined.pop_back();
    joined.push_back(choice);
  }
  group.sizes = std::move(joined);
}

tune::Group swept(const Sweep& sweep, Collective collective, int pes) {
  const Machine machine = load_machine(sweep.machine);
  tune::Group group;
  group.collective = collective;
  group.one_node = machine.max_nodes == 1;
  group.pes = pes;
  group.source = fmt::format("bench/selection_tables on {}", machine.name);
  bench::BestChoice search(machine, collective, pes, sweep.most_events);
  std::vector<tune::Measured> all;
  for (Size bytes = kFirstBytes; bytes <= kLastBytes; bytes *= sweep.step) {
    auto tried = search.at(bytes);
    if (tried.empty()) break;
    if (!group.one_node) keep_the_thrifty(tried);
    all.insert(all.end(), tried.begin(), tried.end());
  }
  group = tune::with_choices(group, all);
  join_equal(group);
  return group;
}

void write(const tune::SelectionTable& table, const std::filesystem::path& file) {
  std::ofstream stream(file);
  stream << tune::to_text(table);
  if (!stream.flush()) throw RuntimeFailure(fmt::format("{}: cannot be written", file.string()));
}

void sweep_all(const Table& table, const std::filesystem::path& folder) {
  std::vector<Task> tasks;
  for (const Sweep& sweep : table.sweeps)
    for (const int pes : sweep.pes)
      for (int i = 0; i < kCollectives; ++i) tasks.push_back({&sweep, static_cast<Collective>(i), pes});
  tune::SelectionTable result = table.head;
  const std::filesystem::path file = folder / (result.name + ".json");
  if (std::filesystem::exists(file)) result.groups = tune::load_selection(file.string()).groups;
  std::erase_if(tasks, [&](const Task& task) { return has_group(result, task); });
  std::mutex mutex;
  cli::for_pieces(static_cast<Size>(tasks.size()), 1, [&](Range piece) {
    const Task& task = tasks[static_cast<std::size_t>(piece.begin)];
    const tune::Group group = swept(*task.sweep, task.collective, task.pes);
    const std::lock_guard lock(mutex);
    tune::put(result, group);
    write(result, file);
    fmt::print("{} {} of {} PEs\n", task.sweep->machine, name(task.collective), task.pes);
    std::fflush(stdout);
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) throw InvalidArgument("FOLDER is missing: selection_tables FOLDER [TABLE ...]");
  for (const Table& table : tables())
    if (arguments.size() == 1 || std::count(arguments.begin() + 1, arguments.end(), table.head.name) > 0)
      sweep_all(table, arguments[0]);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "selection_tables: " << error.what() << '\n';
  return 1;
}
