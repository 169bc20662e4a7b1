#pragma once
/// The quickest way to run a collective on a machine model, by the simulator: what defaults are measured by, and what
/// selection tables of machines that nobody measured are made from.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/simulation.h"
#include "tune/sweep.h"

namespace tandem::bench {

/// One call of a collective.
struct CollectiveCase {
  Collective collective = Collective::kAllReduce;
  int pes = 2;
  Size bytes = 0;  ///< of a PE's larger buffer
};

struct SimulatedCall {
  std::string algorithm;
  int blocks = 0;
  double us = 0;
  std::uint64_t events = 0;
};

inline Size count_of(const CollectiveCase& c, DType type) {
  const Size parts = max(input_elements(c.collective, 1, c.pes, 0, 0), output_elements(c.collective, 1, c.pes, 0, 0));
  return c.bytes / size_of(type) / parts;
}

/// One call, behind one that warms up, as `tandem run` measures it. No algorithm: the library's choice. Nothing where
/// the machine cannot run it.
inline std::optional<SimulatedCall> simulate(const Machine& machine, const CollectiveCase& c,
                                             const std::string& algorithm = "", int blocks = 0) {
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{32} << 30;
  const DType type = DType::kF32;
  CollectiveOptions options;
  options.type = type;
  options.max_count = count_of(c, type);
  options.algorithm = algorithm;
  options.blocks = blocks;
  SimulatedCall result;
  try {
    Simulation simulation(machine, c.pes, sim);
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
        plan->run(stream, in, out, options.max_count);
        stream.synchronize();
        if (measured) result.us = std::max(result.us, world.time_us() - begin);
        world.barrier();
      }
    });
    result.events = simulation.events();
  } catch (const Unsupported&) {
    return std::nullopt;
  } catch (const OutOfMemory&) {
    return std::nullopt;
  } catch (const Deadlock&) {  // more blocks than are resident
    return std::nullopt;
  }
  return result;
}

/// Looks for the quickest algorithm and blocks of one collective on so many PEs, at sizes that ascend.
class BestChoice {
 public:
  /// Where a way with a chance would take more than `most_events` events, as the size before lets expect, the search is
  /// over: what is left would win for want of better ones.
  BestChoice(const Machine& machine, Collective collective, int pes, std::uint64_t most_events)
      : machine_(machine), collective_(collective), pes_(pes), most_events_(most_events) {
    const bool one_node = machine.max_nodes == 1;
    for (const tune::Candidate& candidate : tune::candidates(collective, one_node)) {
      // GPUs of this version have no multicast.
      if (candidate.algorithm == "multimem") continue;
      if (ways_.empty() || ways_.back().algorithm != candidate.algorithm)
        ways_.push_back({candidate.algorithm, {}, candidate.most_bytes});
      ways_.back().blocks.push_back(candidate.blocks);
    }
  }

  /// Returns the choices that were tried at `bytes`; none once the search is over.
  std::vector<tune::Measured> at(Size bytes) {
    constexpr double has_a_chance = 3;
    measured_.clear();
    best_us_ = 0;
    const Size before = std::exchange(bytes_, bytes);
    for (Way& way : ways_)
      if (bytes > way.most_bytes) way.us = kNever;
    // The quickest of the size before comes first, so that others are seen to be far behind.
    std::stable_sort(ways_.begin(), ways_.end(), [](const Way& a, const Way& b) { return a.us < b.us; });
    const double growth = before > 0 ? static_cast<double>(bytes) / static_cast<double>(before) : 1;
    for (const Way& way : ways_)
      if (is_too_long(way, growth) && way.us <= has_a_chance * ways_.front().us) return {};
    for (Way& way : ways_)
      if (bytes <= way.most_bytes && !is_too_long(way, growth)) climb(way);
    return measured_;
  }

 private:
  static constexpr double kNever = 1e12;  ///< microseconds of what cannot run

  struct Way {
    std::string algorithm;
    std::vector<int> blocks;  ///< ascending
    Size most_bytes = 0;
    std::size_t best = 0;  ///< of `blocks`, at the size before
    double us = 0;
    std::uint64_t events = 0;
  };

  bool is_too_long(const Way& way, double growth) const {
    return static_cast<double>(way.events) * growth > static_cast<double>(most_events_);
  }

  double run(Way& way, std::size_t index) {
    if (index >= way.blocks.size()) return kNever;
    for (const tune::Measured& one : measured_)
      if (one.algorithm == way.algorithm && one.blocks == way.blocks[index]) return one.us;
    const auto call = simulate(machine_, {collective_, pes_, bytes_}, way.algorithm, way.blocks[index]);
    measured_.push_back({bytes_, way.algorithm, way.blocks[index], call ? call->us : kNever});
    if (!call) return kNever;
    way.events = call->events;
    if (best_us_ == 0 || call->us < best_us_) best_us_ = call->us;
    return call->us;
  }

  /// From the best number of blocks at the size before, in steps of two, while that gains.
  void climb(Way& way) {
    constexpr double hopeless = 2, level = 1.005;
    way.us = run(way, way.best);
    if (way.us > hopeless * best_us_ && way.us < kNever) {
      // One look at more blocks: what moves little at a time may be far behind only for that.
      const double more = run(way, way.best + 2);
      if (more >= way.us / 1.5) return;
    }
    for (const int direction : {1, -1})
      for (std::size_t misses = 0, i = way.best; misses < 2;) {
        if (direction < 0 && i == 0) break;
        i += static_cast<std::size_t>(direction);
        if (i >= way.blocks.size()) break;
        const double us = run(way, i);
        if (us > level * way.us || us == way.us) ++misses;
        if (us < way.us) {
          way.us = us;
          way.best = i;
          misses = 0;
        } else if (direction < 0) {
          break;
        }
      }
  }

  const Machine& machine_;
  Collective collective_;
  int pes_;
  std::uint64_t most_events_;
  std::vector<Way> ways_;
  Size bytes_ = 0;
  std::vector<tune::Measured> measured_;
  double best_us_ = 0;
};

}  // namespace tandem::bench
