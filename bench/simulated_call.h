#pragma once
/// One call of a collective in the simulator, without data, which ends early where it takes too long or is too dear.

#include <algorithm>
#include <exception>
#include <limits>
#include <string>

#include "sim/run/folding.h"
#include "sim/run/simulator.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem::bench {

/// One call of a collective.
struct CollectiveCase {
  Collective collective = Collective::kAllReduce;
  int pes = 2;
  Size bytes = 0;  ///< of a PE's larger buffer
};

/// Returns how many nodes can stand for all nodes in a simulation of this algorithm, because all of them do the same.
/// Returns 0 if none can. Rings that alternate over NICs need two nodes. Recursive doubling is left out: its partners
/// are no rotation of each other, and folded times were up to 10 % shorter.
inline int nodes_of_folding(Collective collective, const std::string& algorithm, int nodes) {
  struct Alike {
    Collective collective;
    const char* algorithm;
    int nodes;
  };
  using enum Collective;
  static constexpr Alike all[] = {
      {kAllGather, "push", 1},          {kAllGather, "ring", 1},      {kAllGather, "two_level", 1},
      {kAllGather, "two_level_ll", 1},  {kReduceScatter, "push", 1},  {kReduceScatter, "ring", 1},
      {kReduceScatter, "two_level", 1}, {kAllReduce, "ring", 1},      {kAllReduce, "ring_simple", 1},
      {kAllReduce, "multi_ring", 2},    {kAllReduce, "two_level", 1}, {kAllToAll, "push", 1},
      {kAllToAll, "two_level", 1},      {kSendRecv, "ring", 1},       {kExchange, "put_signal", 1},
  };
  for (const Alike& one : all)
    if (one.collective == collective && one.algorithm == algorithm && nodes % one.nodes == 0) return one.nodes;
  return 0;
}

/// Bounds of a simulated call: its simulated time, and the events that the whole simulation may take.
struct Budget {
  double us = std::numeric_limits<double>::infinity();
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();
};

enum class Outcome {
  kRan,
  kCannotRun,  ///< the machine or the team does not suit the algorithm
  kTooSlow,    ///< takes longer than the budget's time
  kTooDear,    ///< takes more than the budget's events
};

struct SimulatedCall {
  Outcome outcome = Outcome::kCannotRun;
  std::string algorithm;
  int blocks = 0;
  double us = 0;             ///< kTooSlow: a lower bound
  std::uint64_t events = 0;  ///< until the end, or until the simulation was stopped
};

inline Size count_of(const CollectiveCase& c, DType type) {
  const Size parts = max(input_elements(c.collective, 1, c.pes, 0, 0), output_elements(c.collective, 1, c.pes, 0, 0));
  return c.bytes / size_of(type) / parts;
}

/// Stops a simulation that exceeds its budget.
class BudgetGuard {
 public:
  BudgetGuard(sim::Engine& engine, const Budget& budget, int pes) : engine_(engine), budget_(budget), pes_(pes) {}

  /// Each PE calls this at the start of a call, which may take `factor` times the budget's time.
  void begin(double factor) {
    if (at_work_++ > 0) return;
    begin_us_ = sim::to_us(engine_.now());
    most_us_ = factor * budget_.us;
    if (!is_watching_) watch();
  }
  void end() {
    if (++ended_ % pes_ == 0) at_work_ = 0;
  }
  Outcome outcome() const { return outcome_; }

  struct Stopped {};

 private:
  // The checks are events too. They have fixed times, so that a budget changes no order of other events.
  static constexpr sim::Time kInterval = 4 * sim::kMicrosecond;

  void watch() {
    is_watching_ = true;
    engine_.at(
        engine_.now() + kInterval, [](void* guard) { static_cast<BudgetGuard*>(guard)->check(); }, this);
  }
  void check() {
    is_watching_ = false;
    if (at_work_ == 0 || engine_.pending() == 0) return;  // without pending events the run has ended in a deadlock
    if (sim::to_us(engine_.now()) - begin_us_ > most_us_) return stop(Outcome::kTooSlow);
    if (engine_.events() > budget_.events) return stop(Outcome::kTooDear);
    watch();
  }
  void stop(Outcome outcome) {
    outcome_ = outcome;
    engine_.fail(std::make_exception_ptr(Stopped{}));
  }

  sim::Engine& engine_;
  const Budget budget_;
  const int pes_;
  int at_work_ = 0, ended_ = 0;
  double begin_us_ = 0, most_us_ = 0;
  bool is_watching_ = false;
  Outcome outcome_ = Outcome::kRan;
};

/// The most PEs for which the call that warms up moves as many bytes as the measured one. For more of them it moves
/// few, because it would double the events. Times differ by less than a percent.
inline constexpr int kMostPesOfWholeWarmUps = 128;
/// The most PEs for which the kernels of all nodes run.
inline constexpr int kMostPesOfWholeRuns = 128;

/// Options of phantom simulations, whose address space has room for large calls.
inline SimOptions phantom_options() {
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{32} << 30;
  return sim;
}

inline CollectiveOptions options_of(const CollectiveCase& c, const std::string& algorithm, int blocks) {
  CollectiveOptions options;
  options.type = DType::kF32;
  options.max_count = count_of(c, options.type);
  options.algorithm = algorithm;
  options.blocks = blocks;
  return options;
}

/// Returns the algorithm that the library chooses.
inline std::string default_algorithm(const Machine& machine, const CollectiveCase& c) {
  std::string algorithm;
  Simulation simulation(machine, c.pes, phantom_options());
  simulation.run([&](World& world) {
    if (world.pe() == 0)
      algorithm = choose_collective(world, c.collective, options_of(c, "", 0), world.team()).algorithm;
  });
  return algorithm;
}

/// Whether a simulation runs the kernels of all nodes, or of some nodes that stand for all.
enum class Nodes { kAll, kFoldedIfMany, kFolded };

/// Simulates one call, behind one that warms up, as `tandem run` measures it. Without an algorithm it takes the
/// library's choice. For many nodes, those that do the same are folded.
inline SimulatedCall simulate(const Machine& machine, const CollectiveCase& c, const std::string& algorithm = "",
                              int blocks = 0, const Budget& budget = {}, Nodes nodes = Nodes::kFoldedIfMany) {
  constexpr double kColdFactor = 2;  // the first call may take so much longer
  constexpr Size few = 64;
  SimOptions sim = phantom_options();
  sim::Folding folding;
  if (nodes == Nodes::kFolded || (nodes == Nodes::kFoldedIfMany && c.pes > kMostPesOfWholeRuns)) {
    const std::string& folded = algorithm.empty() ? default_algorithm(machine, c) : algorithm;
    folding.nodes = nodes_of_folding(c.collective, folded, c.pes / machine.pes_per_node);
    if (folding.nodes > 0) sim.seams.folding = &folding;
  }
  const CollectiveOptions options = options_of(c, algorithm, blocks);
  const Size warm_count =
      c.pes > kMostPesOfWholeWarmUps && sim.seams.folding == nullptr ? min(options.max_count, few) : options.max_count;
  SimulatedCall result{.outcome = Outcome::kRan, .algorithm = algorithm, .blocks = blocks};
  Simulation simulation(machine, c.pes, sim);
  BudgetGuard guard(simulation.simulator().engine, budget, c.pes);
  try {
    simulation.run([&](World& world) {
      const auto in = world.heap().allocate<std::byte>(c.bytes, "in");
      const auto out = world.heap().allocate<std::byte>(c.bytes, "out");
      if (world.pe() == 0) {
        const CollectiveChoice choice = choose_collective(world, c.collective, options, world.team());
        result.algorithm = choice.algorithm;
        result.blocks = choice.blocks;
      }
      const auto plan = make_collective(world, c.collective, options);
      Stream stream = world.make_stream("main");
      for (const bool measured : {false, true}) {
        world.barrier();
        const double begin = world.time_us();
        guard.begin(measured ? 1 : kColdFactor);
        plan->run(stream, in, out, measured ? options.max_count : warm_count);
        stream.synchronize();
        guard.end();
        if (measured) result.us = std::max(result.us, world.time_us() - begin);
        world.barrier();
      }
    });
  } catch (const BudgetGuard::Stopped&) {
    result.outcome = guard.outcome();
    result.us = budget.us;
  } catch (const Unsupported&) {
    result.outcome = Outcome::kCannotRun;
  } catch (const OutOfMemory&) {
    result.outcome = Outcome::kCannotRun;
  } catch (const Deadlock&) {  // more blocks than are resident
    result.outcome = Outcome::kCannotRun;
  }
  result.events = simulation.events();
  return result;
}

}  // namespace tandem::bench
