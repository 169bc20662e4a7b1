// Makes the selection tables of unmeasured machines. `selection_tables FOLDER [--only TEXT]` sweeps all
// collectives on the tables' machine models in the simulator. It writes FOLDER/TABLE.json for each. Option --only takes
// the groups whose name ("predicted-nvlink h100x8-rail 24 PEs all_reduce") has the text. Groups that the file has
// already stay: remove it first to make all of them anew. A table's file is written after each group, so that a run
// that was ended can be continued. All groups take hours of one core. Processes share the cores better than threads,
// which wait for their process's address space. Each process then needs a folder of its own.
//
//   build/release/bench/selection_tables machines/selection
//
// `selection_tables --join FOLDER PART ...` adds the groups of the tables in the folders PART to those in FOLDER.
//
// `selection_tables --check FOLDER` simulates a row of some groups again. This is the test `selection_tables`, which
// fails if the time differs or a group is missing.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "best_choice.h"
#include "tandem/advanced/collective_traits.h"
#include "tools/tandem/options/parallel.h"

using namespace tandem;

namespace {

constexpr Size kFirstBytes = 1024, kLastBytes = Size{1} << 30;
constexpr std::uint64_t kMostEvents = 8'000'000;  ///< of a simulation

struct Sweep {
  const char* machine;
  std::vector<int> pes;
  Size step = 2;                             ///< from one size to the next, a power of two
  std::vector<Collective> collectives = {};  ///< empty: all
};

struct Table {
  tune::SelectionTable head;
  std::vector<Sweep> sweeps;
};

/// One table for each fabric and one for slower links; the machines of a table have figures near those of its models.
const std::vector<Table>& tables() {
  static const std::vector<int> kOfANode{2, 3, 4, 5, 6, 7, 8};
  static const std::vector<Table> all{
      {{"predicted-nvlink",
        "GPUs of one NVLink switch, and nodes of such GPUs with a NIC for each, as the simulator predicts",
        {"H200", "GH200", "H20"},
        {},
        Fabric::kSwitched,
        true},
       {{"h200x8", kOfANode},
        {"h100x8-rail", {16, 24, 32, 48}},
        {"h100x8-rail", {64, 96, 128}, 4},
        {"h100x8-rail", {256, 512, 1024}, 8, {Collective::kAllReduce}},
        {"h100x8-rail", {1024}, 8, {Collective::kAllToAll}},
        {"h100x8-rail", {72, 136, 256, 512, 1024}, 8, {Collective::kBroadcast}}}},
      {{"predicted-h100", "GPUs H100 of one NVLink switch, as the simulator predicts", {"H100"}, {}, {}, true},
       {{"h100x8", kOfANode}}},
      {{"predicted-h800",
        "GPUs of one NVLink switch with half of the links, as the simulator predicts",
        {"H800"},
        {},
        {},
        true},
       {{"h800x8", kOfANode}}},
      {{"predicted-mesh",
        "GPUs with a link for each pair, as the simulator predicts",
        {"MI300X", "MI300A", "MI325X"},
        {},
        Fabric::kFullMesh,
        true},
       {{"mi300x8", kOfANode}}},
      {{"predicted-pcie",
        "GPUs on PCIe, of one socket and of two, as the simulator predicts",
        {"pcie", "RTX PRO 6000", "RTX 6000", "L40", "L40S", "L20", "L4", "A40", "A10", "H100 PCIe", "A100 80GB PCIe",
         "A100-PCIE-40GB"},
        {},
        Fabric::kPcie,
        true},
       {{"pcie-2numa", kOfANode}}},
  };
  return all;
}

/// One group of a table.
struct Task {
  const Sweep* sweep;
  Collective collective;
  int pes;
};

const tune::Group* find_group(const tune::SelectionTable& table, const Task& task) {
  const bool one_node = load_machine(task.sweep->machine).max_nodes == 1;
  const auto found = std::find_if(table.groups.begin(), table.groups.end(), [&](const tune::Group& group) {
    return group.collective == task.collective && group.pes == task.pes && group.one_node == one_node;
  });
  return found == table.groups.end() ? nullptr : &*found;
}

/// Between nodes every block multiplies the messages. The fewest blocks within 3 % of an algorithm's best are enough.
void keep_the_thrifty(std::vector<tune::Measured>& tried) {
  constexpr double level = 1.03;
  std::map<std::string, double> best;
  for (const tune::Measured& one : tried) {
    const auto [at, is_new] = best.emplace(one.algorithm, one.us);
    if (!is_new) at->second = std::min(at->second, one.us);
  }
  const std::vector<tune::Measured> all = tried;
  std::erase_if(tried, [&](const tune::Measured& one) {
    return std::any_of(all.begin(), all.end(), [&](const tune::Measured& other) {
      return other.algorithm == one.algorithm && other.blocks < one.blocks && other.us <= level * best[one.algorithm];
    });
  });
}

/// Joins neighbouring sizes that have one choice.
void join_equal(tune::Group& group) {
  std::vector<tune::SizeChoice> joined;
  for (const tune::SizeChoice& choice : group.sizes) {
    if (!joined.empty() && joined.back().algorithm == choice.algorithm && joined.back().blocks == choice.blocks)
      joined.pop_back();
    joined.push_back(choice);
  }
  group.sizes = std::move(joined);
}

/// Returns whether the best choice at each of two sizes is nearly the best at the other one, too.
bool are_alike(const std::vector<tune::Measured>& some, const std::vector<tune::Measured>& others) {
  constexpr double level = 1.03;
  const auto quicker = [](const tune::Measured& a, const tune::Measured& b) { return a.us < b.us; };
  const auto best_of = [&](const auto& all) { return *std::min_element(all.begin(), all.end(), quicker); };
  const auto suits = [&](const tune::Measured& choice, const std::vector<tune::Measured>& all) {
    return std::any_of(all.begin(), all.end(), [&](const tune::Measured& one) {
      return one.algorithm == choice.algorithm && one.blocks == choice.blocks && one.us <= level * best_of(all).us;
    });
  };
  return suits(best_of(some), others) && suits(best_of(others), some);
}

/// The choices that were tried for a group, at sizes that ascend.
struct Tried {
  std::vector<tune::Measured> all;
  Size last = 0;     ///< the last size
  Size cut_off = 0;  ///< the first size that was not tried, because simulations are too dear; 0: none
};

/// Tries all sizes of a sweep. Where two sizes in turn have different choices, it tries those between them, too.
Tried try_sizes(const Sweep& sweep, const Machine& machine, Collective collective, int pes) {
  Tried result;
  bench::BestChoice search(machine, collective, pes, kMostEvents);
  std::vector<tune::Measured> before;
  const auto add = [&](Size bytes, std::vector<tune::Measured> tried, bool is_complete) {
    if (tried.empty()) {
      result.cut_off = bytes;
      return;
    }
    // The last choice of the group is the best that was found among those that were not too dear.
    if (!is_complete) result.cut_off = 2 * bytes;
    if (machine.max_nodes > 1) keep_the_thrifty(tried);
    result.all.insert(result.all.end(), tried.begin(), tried.end());
    result.last = bytes;
    before = std::move(tried);
  };
  for (Size bytes = kFirstBytes; bytes <= kLastBytes && result.cut_off == 0; bytes *= sweep.step) {
    if (bench::count_of({collective, pes, bytes}, DType::kF32) == 0) continue;
    bench::BestChoice between = search;
    const std::vector<tune::Measured> tried = search.at(bytes);
    const bool is_complete = !tried.empty() && search.is_complete();
    if (result.last > 0 && !(is_complete && are_alike(before, tried)))
      for (Size middle = 2 * result.last; middle < bytes && result.cut_off == 0; middle *= 2) {
        const std::vector<tune::Measured> tried_between = between.at(middle);
        add(middle, tried_between, between.is_complete());
      }
    if (result.cut_off == 0) add(bytes, tried, is_complete);
  }
  return result;
}

tune::Group swept(const Sweep& sweep, Collective collective, int pes) {
  const Machine machine = load_machine(sweep.machine);
  tune::Group group;
  group.collective = collective;
  group.one_node = machine.max_nodes == 1;
  group.pes = pes;
  group.source = fmt::format("bench/selection_tables on {}", machine.name);
  const Tried tried = try_sizes(sweep, machine, collective, pes);
  group = tune::with_choices(group, tried.all);
  join_equal(group);
  // Groups of fewer PEs have the choices for larger sizes.
  if (tried.cut_off > 0 && !group.sizes.empty())
    group.sizes.back().up_to_bytes =
        static_cast<Size>(std::sqrt(static_cast<double>(tried.last) * static_cast<double>(tried.cut_off)));
  return group;
}

void write(const tune::SelectionTable& table, const std::filesystem::path& file) {
  std::ofstream stream(file);
  stream << tune::to_text(table);
  if (!stream.flush()) throw RuntimeFailure(fmt::format("{}: cannot be written", file.string()));
}

/// Returns all groups of a table, those of few PEs first, because they are made soon.
std::vector<Task> tasks_of(const Table& table) {
  std::vector<Task> tasks;
  for (const Sweep& sweep : table.sweeps)
    for (const int pes : sweep.pes)
      for (const Collective collective : all_collectives()) {
        const auto& some = sweep.collectives;
        if (some.empty() || std::find(some.begin(), some.end(), collective) != some.end())
          tasks.push_back({&sweep, collective, pes});
      }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.pes < b.pes; });
  return tasks;
}

std::string name_of(const tune::SelectionTable& table, const Task& task) {
  return fmt::format("{} {} {} PEs {}", table.name, task.sweep->machine, task.pes, name(task.collective));
}

/// A missing group of a table, which is to be made.
struct Missing {
  tune::SelectionTable* table;
  std::filesystem::path file;
  Task task;
};

void make_missing(const std::filesystem::path& folder, const std::string& only) {
  std::vector<tune::SelectionTable> made;
  made.reserve(tables().size());
  std::vector<Missing> missing;
  for (const Table& table : tables()) {
    tune::SelectionTable& result = made.emplace_back(table.head);
    const std::filesystem::path file = folder / (result.name + ".json");
    if (std::filesystem::exists(file)) result.groups = tune::load_selection(file.string()).groups;
    for (const Task& task : tasks_of(table))
      if (find_group(result, task) == nullptr && name_of(result, task).find(only) != std::string::npos)
        missing.push_back({&result, file, task});
  }
  std::mutex mutex;
  cli::for_chunks(static_cast<Size>(missing.size()), 1, [&](Range piece) {
    const auto& [table, file, task] = missing[static_cast<std::size_t>(piece.begin)];
    const tune::Group group = swept(*task.sweep, task.collective, task.pes);
    const std::lock_guard lock(mutex);
    if (!group.sizes.empty()) {
      tune::put(*table, group);
      write(*table, file);
    }
    fmt::print("{}{}\n", name_of(*table, task), group.sizes.empty() ? ": all sizes are too dear" : "");
    std::fflush(stdout);
  });
}

void join(const std::filesystem::path& folder, const std::vector<std::string>& parts) {
  for (const Table& table : tables()) {
    tune::SelectionTable joined = table.head;
    const std::string file = table.head.name + ".json";
    std::vector<std::filesystem::path> folders{folder};
    folders.insert(folders.end(), parts.begin(), parts.end());
    for (const std::filesystem::path& one : folders)
      if (std::filesystem::exists(one / file))
        for (const tune::Group& group : tune::load_selection((one / file).string()).groups) tune::put(joined, group);
    if (!joined.groups.empty()) write(joined, folder / file);
  }
}

/// Returns whether the simulator gives the time that a group's middle row has. A row that is dear counts as right.
bool is_reproduced(const Task& task, const tune::Group& group) {
  constexpr double most_off = 0.02;
  constexpr std::uint64_t most_events = 500'000;
  const tune::SizeChoice& row = group.sizes[group.sizes.size() / 2];
  if (!row.measured_bytes || !row.us) return false;
  const bench::SimulatedCall call =
      bench::simulate(load_machine(task.sweep->machine), {task.collective, task.pes, *row.measured_bytes},
                      row.algorithm, row.blocks, {.events = most_events});
  if (call.outcome == bench::Outcome::kTooDear) return true;
  return call.outcome == bench::Outcome::kRan && std::abs(call.us - *row.us) <= most_off * *row.us;
}

/// Returns whether a table has a choice for some call of the collective. A new one has none until its groups are made.
bool lists(const tune::SelectionTable& table, Collective collective) {
  return std::any_of(table.groups.begin(), table.groups.end(),
                     [&](const tune::Group& group) { return group.collective == collective; });
}

/// Returns whether a table has exactly the groups that this program makes, with the simulator's present times in some.
bool is_as_made(const Table& table, const std::filesystem::path& folder) {
  constexpr std::size_t every = 7;  // one collective or another of each number of PEs
  const tune::SelectionTable file = tune::load_selection((folder / (table.head.name + ".json")).string());
  std::vector<Task> tasks = tasks_of(table);
  std::erase_if(tasks, [&](const Task& task) { return !lists(file, task.collective); });
  bool is_right = file.groups.size() == tasks.size();
  if (!is_right) fmt::print("{}: {} groups, {} are made\n", file.name, file.groups.size(), tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const tune::Group* const group = find_group(file, tasks[i]);
    if (group != nullptr && (i % every != 0 || is_reproduced(tasks[i], *group))) continue;
    fmt::print("{} {}\n", name_of(file, tasks[i]),
               group == nullptr ? "is missing" : "differs from what the simulator gives");
    is_right = false;
  }
  return is_right;
}

bool check(const std::filesystem::path& folder) {
  bool is_right = true;
  for (const Table& table : tables()) is_right = is_as_made(table, folder) && is_right;
  return is_right;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first == "--check" && arguments.size() == 2) return check(arguments[1]) ? 0 : 1;
  if (first == "--join" && arguments.size() > 2) {
    join(arguments[1], {arguments.begin() + 2, arguments.end()});
    return 0;
  }
  const bool has_only = arguments.size() == 3 && arguments[1] == "--only";
  if (first.rfind("--", 0) == 0 || (arguments.size() != 1 && !has_only))
    throw InvalidArgument("usage: selection_tables FOLDER [--only TEXT], --join FOLDER PART ..., or --check FOLDER");
  make_missing(first, has_only ? arguments[2] : "");
  return 0;
} catch (const std::exception& error) {
  std::cerr << "selection_tables: " << error.what() << '\n';
  return 1;
}
