// Rates the library's defaults by the simulator. Each default of a collective is compared with the fastest algorithm
// and blocks. Each default of an operator is compared with its sequential form. Times of neighbouring sizes and numbers
// of PEs are compared with each other. Where a time jumps, the default is compared with the best choice.
//
//   build/release/bench/defaults_sweep [--all [--only TEXT] [--events N]] [--shard I/N] [--json FILE]
//
// Without --all it takes a sample of a minute. This is the test `defaults`, which fails if a default misses its limit.
// Option --only takes the comparisons whose name ("h100x8-rail 64 PEs all_reduce") has the text. Option --shard takes
// every Nth one from the Ith. All of them take hours of one core. Processes with a shard each share the cores better
// than threads, which wait for their process's address space.
// Defaults that were measured on GPUs or CPUs (machines/selection/nvidia-h200.json, host.json) are not compared with
// the model. This includes PEs for which the nearest measured number stands in. A comparison for which a simulation
// would take too many events is counted by itself. Option --events gives the most.

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "default_rows.h"
#include "tandem/advanced/collective_traits.h"
#include "tools/tandem/options/parallel.h"

using namespace tandem;
using bench::DefaultRow;
using bench::Shape;

namespace {

constexpr Size kMostBytes = Size{1} << 30;
constexpr std::uint64_t kMostEvents = 4'000'000, kMostEventsOfAll = 3'000'000;

/// One comparison, or some at sizes that ascend.
struct Task {
  std::string name;
  std::function<std::vector<DefaultRow>()> run;
};
using Tasks = std::vector<Task>;

struct Effort {
  std::uint64_t most_events = kMostEvents;
  std::size_t sizes_at_once = 1;  ///< that one search serves
};

void add_collective(Tasks& tasks, const Machine& machine, Collective collective, int pes,
                    const std::vector<Size>& sizes, const Effort& effort) {
  if (bench::is_measured(machine, collective, pes)) return;
  for (std::size_t i = 0; i < sizes.size(); i += effort.sizes_at_once) {
    const std::vector<Size> some(
        sizes.begin() + static_cast<std::ptrdiff_t>(i),
        sizes.begin() + static_cast<std::ptrdiff_t>(std::min(sizes.size(), i + effort.sizes_at_once)));
    tasks.push_back({fmt::format("{} {} PEs {}", machine.name, pes, name(collective)),
                     [=] { return bench::against_best(machine, collective, pes, some, effort.most_events); }});
  }
}

void add_operators(Tasks& tasks, const Machine& machine, int pes, const std::vector<Shape>& shapes) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const Shape& shape : shapes)
      tasks.push_back({fmt::format("{} {} PEs {}", machine.name, pes, name(op)),
                       [=] { return std::vector{bench::against_sequential(machine, pes, op, shape)}; }});
}

void add_neighbours(Tasks& tasks, const char* machine, const bench::CollectiveCase& more,
                    const bench::CollectiveCase& fewer, std::uint64_t most_events) {
  tasks.push_back({fmt::format("{} neighbours of {} PEs {}", machine, fewer.pes, name(fewer.collective)), [=] {
                     return std::vector{bench::against_neighbour(load_machine(machine), more, fewer, most_events)};
                   }});
}

constexpr Collective kCompared[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter};

void add_twice_the_bytes(Tasks& tasks, const std::vector<Size>& sizes, std::uint64_t most_events) {
  for (const Collective collective : kCompared)
    for (const Size bytes : sizes) {
      if (2 * bytes > kMostBytes) continue;
      add_neighbours(tasks, "h200x8", {collective, 8, 2 * bytes}, {collective, 8, bytes}, most_events);
      add_neighbours(tasks, "h100x8-rail", {collective, 16, 2 * bytes}, {collective, 16, bytes}, most_events);
    }
}

void add_one_node_more(Tasks& tasks, const std::vector<Size>& sizes, const std::vector<int>& pes,
                       std::uint64_t most_events) {
  for (const Collective collective : kCompared)
    for (const Size bytes : sizes)
      for (const int count : pes)
        add_neighbours(tasks, "h100x8-rail", {collective, count + 8, bytes}, {collective, count, bytes}, most_events);
}

Tasks sample() {
  using enum Collective;
  Tasks tasks;
  const std::vector<Size> sizes{Size{64} << 10, Size{16} << 20};
  for (const char* const name : {"h200x8", "mi300x8", "pcie-2numa"})
    for (const Collective collective : {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSendRecv})
      add_collective(tasks, load_machine(name), collective, 8, sizes, {});
  for (const Collective collective : {kAllReduce, kAllGather})
    add_collective(tasks, load_machine("h100x8-rail"), collective, 16, sizes, {});
  const std::vector<Shape> shapes{{16, 8192, 28672}, {1024, 8192, 8192}, {8192, 8192, 8192}};
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    add_operators(tasks, machine, machine.pes_per_node * machine.default_nodes, shapes);
  }
  add_twice_the_bytes(tasks, {Size{1} << 20, Size{64} << 20}, kMostEvents);
  add_one_node_more(tasks, {Size{1} << 20}, {16, 24, 64, 72}, kMostEvents);
  return tasks;
}

std::vector<Size> sizes_from(Size first, Size step) {
  std::vector<Size> sizes;
  for (Size bytes = first; bytes < kMostBytes; bytes *= step) sizes.push_back(bytes);
  sizes.push_back(kMostBytes);
  return sizes;
}

Tasks everything(std::uint64_t most_events) {
  Tasks tasks;
  const std::vector<Shape> shapes{{1, 8192, 28672},   {16, 8192, 28672},   {128, 8192, 28672},  {512, 8192, 8192},
                                  {1024, 8192, 8192}, {1024, 28672, 4096}, {2048, 8192, 8192},  {4096, 8192, 28672},
                                  {8192, 8192, 8192}, {8192, 10240, 8192}, {8192, 28672, 4096}, {65536, 8192, 8192}};
  const Effort one_node{most_events, 100}, between_nodes{most_events, 3};
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    for (const Collective collective : all_collectives()) {
      // Several nodes are whole ones.
      for (int pes = machine.max_nodes == 1 ? 2 : machine.pes_per_node; pes <= machine.pes_per_node; ++pes)
        add_collective(tasks, machine, collective, pes, sizes_from(1024, 4), one_node);
      if (machine.max_nodes == 1) continue;
      // Sizes between those of the tables, and numbers of PEs that they lack.
      for (const int pes : {16, 24, 32, 48, 64, 96, 128, 256, 512, 1024})
        add_collective(tasks, machine, collective, pes, sizes_from(2048, 8), between_nodes);
    }
    add_operators(tasks, machine, machine.pes_per_node * machine.default_nodes, shapes);
    if (machine.max_nodes > 1) add_operators(tasks, machine, machine.pes_per_node * 4, shapes);
  }
  add_twice_the_bytes(tasks, sizes_from(1024, 4), most_events);
  add_one_node_more(tasks, sizes_from(1024, 4), {16, 24, 32, 64, 72, 128}, most_events);
  return tasks;
}

/// Takes the rows as they arrive: prints each, and counts those that miss their limit.
class Report {
 public:
  void add(const std::vector<DefaultRow>& rows) {
    const std::lock_guard lock(mutex_);
    for (const DefaultRow& row : rows) add(row);
    std::fflush(stdout);
  }
  /// Prints the sums, writes the file if there is one, and returns how many rows miss their limit.
  int finish(const std::string& json_file) const {
    fmt::print("{} comparisons, {} above their limit, {} too dear to be complete\n", rows_.size(), missed_, dear_);
    if (json_file.empty()) return missed_;
    std::ofstream stream(json_file);
    stream << rows_.dump(1) << '\n';
    if (!stream.flush()) throw RuntimeFailure(fmt::format("{}: cannot be written", json_file));
    return missed_;
  }

 private:
  void add(const DefaultRow& row) {
    const bool is_missed = row.than_us > 0 && !row.is_right();
    if (is_missed) ++missed_;
    if (!row.is_complete) ++dear_;
    const std::string remark = is_missed ? fmt::format("  above {:.2f}", row.most) : "";
    fmt::print("{:<52} {:>10.2f}  {:<26} {:>10.2f}  {:<26} {:>7.3f}{}{}\n", row.what, row.us, row.taken, row.than_us,
               row.than, row.than_us > 0 ? row.us / row.than_us : 0, remark, row.is_complete ? "" : "  too dear");
    rows_.push_back({{"default", row.what},
                     {"us", row.us},
                     {"takes", row.taken},
                     {"against_us", row.than_us},
                     {"of", row.than},
                     {"most", row.most},
                     {"complete", row.is_complete},
                     {"right", !is_missed}});
  }

  std::mutex mutex_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  int missed_ = 0, dear_ = 0;
};

struct Shard {
  std::size_t index = 1, of = 1;
};

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, shard.of);
    if (second.ec == std::errc() && second.ptr == end && shard.index >= 1 && shard.index <= shard.of) return shard;
  }
  throw InvalidArgument(fmt::format("--shard: '{}' given, allowed is I/N with I from 1 to N", text));
}

struct Options {
  bool all = false;
  std::string only, json_file;
  Shard shard;
  std::uint64_t most_events = kMostEventsOfAll;
};

std::uint64_t parse_events(const std::string& text) {
  std::uint64_t events = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, events);
  if (read.ec == std::errc() && read.ptr == end && events > 0) return events;
  throw InvalidArgument(fmt::format("--events: '{}' given, allowed is a number above 0", text));
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (argument == "--all") {
      options.all = true;
    } else if (argument == "--json" && has_value) {
      options.json_file = arguments[++i];
    } else if (argument == "--only" && has_value) {
      options.only = arguments[++i];
    } else if (argument == "--shard" && has_value) {
      options.shard = parse_shard(arguments[++i]);
    } else if (argument == "--events" && has_value) {
      options.most_events = parse_events(arguments[++i]);
    } else {
      throw InvalidArgument(
          fmt::format("'{}' given, allowed are --all, --only TEXT, --events N, --shard I/N and --json FILE", argument));
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse({argv + 1, argv + argc});
  Tasks chosen;
  for (Task& task : options.all ? everything(options.most_events) : sample())
    if (task.name.find(options.only) != std::string::npos) chosen.push_back(std::move(task));
  Tasks tasks;
  for (std::size_t i = options.shard.index - 1; i < chosen.size(); i += options.shard.of)
    tasks.push_back(std::move(chosen[i]));
  Report report;
  fmt::print("{:<52} {:>10}  {:<26} {:>10}  {:<26} {:>7}\n", "default", "us", "takes", "against us", "of", "ratio");
  cli::for_chunks(static_cast<Size>(tasks.size()), 1,
                  [&](Range piece) { report.add(tasks[static_cast<std::size_t>(piece.begin)].run()); });
  return report.finish(options.json_file) == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "defaults_sweep: " << error.what() << '\n';
  return 1;
}
