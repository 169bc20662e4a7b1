// How good the library's defaults are, by the simulator: each default of a collective against the quickest algorithm
// and blocks, each default of an operator against its sequential form, and times of neighbouring sizes and numbers of
// PEs against each other.
//
//   build/release/bench/defaults_sweep [--all] [--json FILE]
//
// Without --all a sample of a minute, which is the test `defaults`: it fails where a default misses its limit.
// Defaults that were measured on GPUs (machines/selection/nvidia-h200.json) are not compared with the model.

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "best_choice.h"
#include "tandem/operators.h"
#include "tools/tandem/options/parallel.h"

using namespace tandem;

namespace {

/// A default may take so much more than the best, an operator than its sequential form.
constexpr double kMostOverBest = 1.05, kMostOverSequential = 1.02;
/// For twice the bytes, and for one node or a few PEs more.
constexpr double kMostForTwice = 2.25, kMostForNeighbour = 1.6;
constexpr std::uint64_t kMostEvents = 4'000'000;

/// One comparison: `us` may be `most` times `than_us`.
struct Row {
  std::string what, taken, than;
  double us = 0, than_us = 0, most = 1;

  bool is_right() const { return us <= most * than_us; }
};

using Task = std::function<std::optional<Row>()>;

std::string place(const Machine& machine, Collective collective, int pes, Size bytes) {
  return fmt::format("{} {} PEs {} {}", machine.name, pes, name(collective), bytes);
}

std::string way_of(const std::string& algorithm, int blocks) {
  return blocks > 0 ? fmt::format("{}/{}", algorithm, blocks) : algorithm;
}

std::optional<Row> against_best(const Machine& machine, Collective collective, int pes, Size bytes) {
  const auto chosen = bench::simulate(machine, {collective, pes, bytes});
  if (!chosen) return std::nullopt;
  Row row{place(machine, collective, pes, bytes),
          way_of(chosen->algorithm, chosen->blocks),
          "",
          chosen->us,
          0,
          kMostOverBest};
  bench::BestChoice search(machine, collective, pes, kMostEvents);
  for (const tune::Measured& one : search.at(bytes))
    if (row.than_us == 0 || one.us < row.than_us) {
      row.than = way_of(one.algorithm, one.blocks);
      row.than_us = one.us;
    }
  return row;
}

struct Shape {
  Size m, n, k;
};

double operator_us(const Machine& machine, int pes, Operator op, const Shape& shape, Form form, std::string& way) {
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{32} << 30;
  Simulation simulation(machine, pes, sim);
  double us = 0;
  simulation.run([&](World& world) {
    const auto buffer = [&](Size rows, Size cols, const char* what) {
      return world.heap().allocate_local<bf16>(rows * cols, what);
    };
    bf16* const a = buffer(shape.m, shape.k, "a");
    bf16* const b = buffer(shape.n, shape.k, "b");
    bf16* const c = buffer(shape.m, shape.n, "c");
    const auto plan =
        make_operator(world, op, {.m = shape.m, .n = shape.n, .k = shape.k, .type = DType::kBF16, .form = form});
    if (world.pe() == 0) way = plan->way(shape.m);
    Stream stream = world.make_stream("main");
    for (const bool measured : {false, true}) {
      world.barrier();
      const double begin = world.time_us();
      plan->run(stream, a, b, c);
      stream.synchronize();
      if (measured) us = std::max(us, world.time_us() - begin);
    }
  });
  return us;
}

std::optional<Row> against_sequential(const Machine& machine, int pes, Operator op, const Shape& shape) {
  Row row;
  row.what = fmt::format("{} {} PEs {} {}x{}x{}", machine.name, pes, name(op), shape.m, shape.n, shape.k);
  row.most = kMostOverSequential;
  row.us = operator_us(machine, pes, op, shape, Form::kSuitable, row.taken);
  row.than_us = operator_us(machine, pes, op, shape, Form::kSequential, row.than);
  return row;
}

/// `more` against `fewer`.
std::optional<Row> against_neighbour(const Machine& machine, const bench::CollectiveCase& more,
                                     const bench::CollectiveCase& fewer) {
  const auto a = bench::simulate(machine, more);
  const auto b = bench::simulate(machine, fewer);
  if (!a || !b) return std::nullopt;
  return Row{place(machine, more.collective, more.pes, more.bytes),
             way_of(a->algorithm, a->blocks),
             fmt::format("{} PEs, {} bytes: {}", fewer.pes, fewer.bytes, way_of(b->algorithm, b->blocks)),
             a->us,
             b->us,
             more.pes == fewer.pes ? kMostForTwice : kMostForNeighbour};
}

const std::vector<Operator> kOperators{Operator::kAllGatherGemm, Operator::kGemmReduceScatter,
                                       Operator::kGemmAllReduce};

void add_collectives(std::vector<Task>& tasks, const Machine& machine, const std::vector<int>& pes,
                     const std::vector<Collective>& collectives, const std::vector<Size>& sizes) {
  for (const int count : pes)
    for (const Collective collective : collectives)
      for (const Size bytes : sizes)
        tasks.emplace_back([=] { return against_best(machine, collective, count, bytes); });
}

void add_operators(std::vector<Task>& tasks, const Machine& machine, int pes, const std::vector<Shape>& shapes) {
  for (const Operator op : kOperators)
    for (const Shape& shape : shapes) tasks.emplace_back([=] { return against_sequential(machine, pes, op, shape); });
}

void add_neighbours(std::vector<Task>& tasks, const std::vector<Size>& sizes) {
  const Machine rails = load_machine("h100x8-rail"), one_node = load_machine("h200x8");
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const Size bytes : sizes) {
      tasks.emplace_back([=] { return against_neighbour(rails, {collective, 72, bytes}, {collective, 64, bytes}); });
      tasks.emplace_back([=] {
        return against_neighbour(one_node, {collective, 8, 2 * bytes}, {collective, 8, bytes});
      });
      tasks.emplace_back([=] {
        return against_neighbour(rails, {collective, 16, 2 * bytes}, {collective, 16, bytes});
      });
    }
}

std::vector<Task> sample() {
  using enum Collective;
  std::vector<Task> tasks;
  const std::vector<Collective> some{kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSendRecv};
  for (const char* const name : {"h200x8", "mi300x8", "pcie-2numa"})
    add_collectives(tasks, load_machine(name), {8}, some, {Size{64} << 10, Size{16} << 20});
  add_collectives(tasks, load_machine("h100x8-rail"), {16}, {kAllReduce, kAllGather}, {Size{64} << 10, Size{16} << 20});
  const std::vector<Shape> shapes{{16, 8192, 28672}, {1024, 8192, 8192}, {8192, 8192, 8192}};
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    add_operators(tasks, machine, machine.pes_per_node * machine.default_nodes, shapes);
  }
  add_neighbours(tasks, {Size{1} << 20, Size{64} << 20});
  return tasks;
}

std::vector<Task> everything() {
  std::vector<Task> tasks;
  std::vector<Collective> all;
  for (int i = 0; i < kCollectives; ++i) all.push_back(static_cast<Collective>(i));
  std::vector<Size> sizes;
  for (Size bytes = 1024; bytes <= Size{1} << 30; bytes *= 4) sizes.push_back(bytes);
  const std::vector<Shape> shapes{{1, 8192, 28672},   {16, 8192, 28672},   {128, 8192, 28672},  {512, 8192, 8192},
                                  {1024, 8192, 8192}, {1024, 28672, 4096}, {2048, 8192, 8192},  {4096, 8192, 28672},
                                  {8192, 8192, 8192}, {8192, 10240, 8192}, {8192, 28672, 4096}, {65536, 8192, 8192}};
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    const bool one_node = machine.max_nodes == 1;
    std::vector<int> pes{16, 24, 64, 128};
    if (one_node) pes = machine.pes_per_node == 8 ? std::vector{5, 6, 8} : std::vector<int>{};
    if (one_node && machine.link.fabric != Fabric::kSwitched) pes = {2, 3, 4, 8};
    add_collectives(tasks, machine, pes, all, sizes);
    add_operators(tasks, machine, machine.pes_per_node * machine.default_nodes, shapes);
  }
  add_neighbours(tasks, sizes);
  return tasks;
}

/// Prints the rows, and returns how many miss their limit.
int report(const std::vector<std::optional<Row>>& rows, const std::string& json_file) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  int missed = 0;
  fmt::print("{:<52} {:>10}  {:<26} {:>10}  {:<26} {:>7}\n", "default", "us", "takes", "against us", "of", "ratio");
  for (const std::optional<Row>& row : rows) {
    if (!row) continue;
    fmt::print("{:<52} {:>10.2f}  {:<26} {:>10.2f}  {:<26} {:>7.3f}{}\n", row->what, row->us, row->taken, row->than_us,
               row->than, row->us / row->than_us, row->is_right() ? "" : fmt::format("  above {:.2f}", row->most));
    json.push_back({{"default", row->what},
                    {"us", row->us},
                    {"takes", row->taken},
                    {"against_us", row->than_us},
                    {"of", row->than},
                    {"most", row->most},
                    {"right", row->is_right()}});
    if (!row->is_right()) ++missed;
  }
  fmt::print("{} comparisons, {} above their limit\n", json.size(), missed);
  if (json_file.empty()) return missed;
  std::ofstream stream(json_file);
  stream << json.dump(2) << '\n';
  if (!stream.flush()) throw RuntimeFailure(fmt::format("{}: cannot be written", json_file));
  return missed;
}

}  // namespace

int main(int argc, char** argv) try {
  bool all = false;
  std::string json_file;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--all") {
      all = true;
    } else if (argument == "--json" && i + 1 < argc) {
      json_file = argv[++i];
    } else {
      throw InvalidArgument(fmt::format("'{}' given, allowed are --all and --json FILE", argument));
    }
  }
  const std::vector<Task> tasks = all ? everything() : sample();
  std::vector<std::optional<Row>> rows(tasks.size());
  cli::for_pieces(static_cast<Size>(tasks.size()), 1, [&](Range piece) {
    const auto i = static_cast<std::size_t>(piece.begin);
    rows[i] = tasks[i]();
  });
  return report(rows, json_file) == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "defaults_sweep: " << error.what() << '\n';
  return 1;
}
