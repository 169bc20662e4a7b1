#pragma once
/// Comparisons that show how good the library's defaults are, by the simulator.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "best_choice.h"
#include "least_time.h"
#include "tandem/operators.h"
#include "tune/selection.h"

namespace tandem::bench {

/// The most that a default may take over the best choice, and an operator over its sequential form.
inline constexpr double kMostOverBest = 1.05, kMostOverSequential = 1.02;
/// The most for twice the bytes, and for one node more over the rounds in which a PE can hear of all nodes.
inline constexpr double kMostForTwice = 2.25, kMostForRounds = 1.2;

/// One comparison: `us` may be `most` times `than_us`.
struct DefaultRow {
  std::string what, taken, than;
  double us = 0, than_us = 0, most = 1;
  bool is_complete = true;  ///< no simulation was too dear

  bool is_right() const { return us <= most * than_us; }
};

inline std::string place(const Machine& machine, Collective collective, int pes, Size bytes) {
  return fmt::format("{} {} PEs {} {}", machine.name, pes, name(collective), bytes);
}

inline std::string way_of(const std::string& algorithm, int blocks) {
  return blocks > 0 ? fmt::format("{}/{}", algorithm, blocks) : algorithm;
}

/// Returns whether the default of this collective was measured on GPUs of this family, or on CPUs. No model decides it
/// then. The group may be that of the nearest number of PEs.
inline bool is_measured(const Machine& machine, Collective collective, int pes) {
  constexpr Size few_bytes = 1024;
  const auto chosen = tune::choose(machine, "",
                                   {.collective = collective,
                                    .one_node = pes <= machine.pes_per_node,
                                    .pes = pes,
                                    .element_bytes = size_of(DType::kF32),
                                    .bytes = few_bytes},
                                   [](const std::string&) { return true; });
  const auto& tables = tune::builtin_tables();
  return chosen && std::any_of(tables.begin(), tables.end(), [&](const tune::SelectionTable& table) {
           return table.name == chosen->table && !table.is_predicted;
         });
}

/// Compares the default with the fastest algorithm and blocks, at sizes that ascend.
inline std::vector<DefaultRow> against_best(const Machine& machine, Collective collective, int pes,
                                            const std::vector<Size>& sizes, std::uint64_t most_events) {
  std::vector<DefaultRow> rows;
  BestChoice search(machine, collective, pes, most_events);
  for (const Size bytes : sizes) {
    const CollectiveCase one{collective, pes, bytes};
    if (count_of(one, DType::kF32) == 0) continue;
    const SimulatedCall chosen = simulate(machine, one, "", 0, {.events = most_events});
    DefaultRow row{place(machine, collective, pes, bytes),
                   way_of(chosen.algorithm, chosen.blocks),
                   "",
                   chosen.us,
                   0,
                   kMostOverBest,
                   chosen.outcome == Outcome::kRan};
    const double least_us = bench::least_us(machine, one);
    if (row.is_complete && chosen.us <= kMostOverBest * least_us) {
      row.than = pes <= machine.pes_per_node ? "what the links take" : "what the NICs take";
      row.than_us = least_us;
    } else if (row.is_complete) {
      for (const tune::Measured& tried : search.at(bytes, chosen, chosen.us / kMostOverBest))
        if (row.than_us == 0 || tried.us < row.than_us) {
          row.than = way_of(tried.algorithm, tried.blocks);
          row.than_us = tried.us;
        }
      row.is_complete = search.is_complete();
    }
    rows.push_back(row);
  }
  return rows;
}

struct Shape {
  Size m, n, k;
};

inline double operator_us(const Machine& machine, int pes, Operator op, const Shape& shape, Form form,
                          std::string& way) {
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
    if (world.pe() == 0) way = plan->strategy(shape.m);
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

inline DefaultRow against_sequential(const Machine& machine, int pes, Operator op, const Shape& shape) {
  DefaultRow row;
  row.what = fmt::format("{} {} PEs {} {}x{}x{}", machine.name, pes, name(op), shape.m, shape.n, shape.k);
  row.most = kMostOverSequential;
  row.us = operator_us(machine, pes, op, shape, Form::kSuitable, row.taken);
  row.than_us = operator_us(machine, pes, op, shape, Form::kSequential, row.than);
  return row;
}

/// Returns the least rounds of messages between pairs of nodes after which each node can know something of all of them.
/// If latency counts, no algorithm's time grows by less: from 8 to 9 nodes three rounds become four.
inline int rounds(const Machine& machine, int pes) {
  const auto nodes = static_cast<unsigned>(ceil_div(pes, machine.pes_per_node));
  return std::max(1, static_cast<int>(std::bit_width(nodes - 1)));
}

/// Compares `more` with `fewer`. If its time jumps, it is compared with the best choice: what no choice avoids is not
/// the default's fault.
inline DefaultRow against_neighbour(const Machine& machine, const CollectiveCase& more, const CollectiveCase& fewer,
                                    std::uint64_t most_events) {
  const SimulatedCall a = simulate(machine, more, "", 0, {.events = most_events});
  const SimulatedCall b = simulate(machine, fewer, "", 0, {.events = most_events});
  const bool both_ran = a.outcome == Outcome::kRan && b.outcome == Outcome::kRan;
  const double more_rounds = static_cast<double>(rounds(machine, more.pes)) / rounds(machine, fewer.pes);
  DefaultRow row{place(machine, more.collective, more.pes, more.bytes),
                 way_of(a.algorithm, a.blocks),
                 fmt::format("{} PEs, {} bytes: {}", fewer.pes, fewer.bytes, way_of(b.algorithm, b.blocks)),
                 both_ran ? a.us : 0,
                 both_ran ? b.us : 0,
                 more.pes == fewer.pes ? kMostForTwice : kMostForRounds * more_rounds,
                 both_ran};
  if (!both_ran || row.is_right()) return row;
  return against_best(machine, more.collective, more.pes, {more.bytes}, most_events).front();
}

}  // namespace tandem::bench
