#pragma once
/// The fastest way to run a collective on a machine model, by the simulator. Defaults are compared with it, and
/// selection tables of unmeasured machines are made from it.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "simulated_call.h"
#include "tune/sweep.h"

namespace tandem::bench {

/// Looks for the quickest algorithm and blocks of one collective on so many PEs, at sizes that ascend.
class BestChoice {
 public:
  /// Simulates a call of so many bytes with an algorithm and blocks.
  using Trial = std::function<SimulatedCall(Size bytes, const std::string& algorithm, int blocks, const Budget&)>;

  /// No simulation takes more than `most_events` events.
  BestChoice(const Machine& machine, Collective collective, int pes, std::uint64_t most_events)
      : BestChoice(
            tune::candidates(collective, pes <= machine.pes_per_node), most_events,
            [&machine, collective, pes](Size bytes, const std::string& algorithm, int blocks, const Budget& budget) {
              return simulate(machine, {collective, pes, bytes}, algorithm, blocks, budget);
            },
            Size{4} * pes) {}
  /// `few_bytes`: with them, each PE has something for each other one.
  BestChoice(const std::vector<tune::Candidate>& candidates, std::uint64_t most_events, Trial trial,
             Size few_bytes = tune::kAnySize)
      : trial_(std::move(trial)), most_events_(most_events), few_bytes_(few_bytes) {
    for (const tune::Candidate& candidate : candidates) {
      // GPUs of this version have no multicast.
      if (candidate.algorithm == "multimem") continue;
      if (ways_.empty() || ways_.back().algorithm != candidate.algorithm)
        ways_.push_back({candidate.algorithm, {}, candidate.most_bytes});
      ways_.back().blocks.push_back(candidate.blocks);
    }
  }

  /// Returns the choices that were tried at `bytes` and ended. `known`: a call that is one of them, whose time bounds
  /// the others' from the beginning. If its simulation is not quite cheap, others end at `most_us`.
  std::vector<tune::Measured> at(Size bytes, const SimulatedCall& known = {}, double most_us = kNever) {
    bytes_ = bytes;
    tried_.clear();
    best_us_ = kNever;
    most_us_ = known.events > kWorthBounds ? most_us : kNever;
    if (known.outcome == Outcome::kRan) add(known);
    // The fastest way of the size before is the first one, so that the others are soon seen to be behind.
    std::stable_sort(ways_.begin(), ways_.end(), [](const Way& a, const Way& b) { return a.us < b.us; });
    for (Way& way : ways_) {
      way.is_cut = false;
      way.us = kNever;
      if (bytes <= way.most_bytes) climb(way);
    }
    is_first_ = false;
    std::vector<tune::Measured> ended;
    for (const SimulatedCall& call : tried_)
      if (call.outcome == Outcome::kRan) ended.push_back({bytes, call.algorithm, call.blocks, call.us});
    return ended;
  }

  /// Returns whether, at the last size, each algorithm either ended, with as many blocks as gained, or was seen to be
  /// behind. Twice the blocks take half of the time at best, but for what one block takes for few bytes.
  bool is_complete() const {
    return std::none_of(ways_.begin(), ways_.end(), [&](const Way& way) {
      const double share = static_cast<double>(way.blocks[way.best]) / way.blocks.back();
      const double least_us = std::min(way.least_us, way.us);
      return way.is_cut && (way.us >= kNever || least_us + (way.us - least_us) * share < std::min(best_us_, most_us_));
    });
  }

  /// Returns whether an algorithm's blocks send to different PEs, so that many of them can be quicker for few bytes.
  static bool shares_pes(const std::string& algorithm) { return algorithm == "scatter_all_gather"; }

 private:
  static constexpr double kNever = 1e12;           ///< microseconds of what cannot run
  static constexpr std::uint64_t kDear = 200'000;  ///< events of a simulation
  static constexpr std::uint64_t kWorthBounds = 20'000;
  static constexpr double kHopeless = 1.5;      ///< times the quickest
  static constexpr double kLevelOfDear = 1.02;  ///< a dear simulation has to gain so much

  struct Way {
    std::string algorithm;
    std::vector<int> blocks;  ///< ascending
    Size most_bytes = 0;
    std::size_t best = 0;  ///< of `blocks`, at the size before
    double us = 0;
    double least_us = 0;          ///< for one block and few bytes, or a lower bound of that
    bool is_least_exact = false;  ///< the simulation of that ended
    bool is_cut = false;          ///< more blocks could gain, but were too dear
  };

  const SimulatedCall& add(const SimulatedCall& call) {
    tried_.push_back(call);
    if (call.outcome == Outcome::kRan) best_us_ = std::min(best_us_, call.us);
    return tried_.back();
  }

  SimulatedCall run(const Way& way, std::size_t index) {
    if (index >= way.blocks.size()) return {};
    const int blocks = way.blocks[index];
    for (const SimulatedCall& call : tried_)
      if (call.algorithm == way.algorithm && call.blocks == blocks) return call;
    if (is_surely_too_dear(way, blocks))
      return add({.outcome = Outcome::kTooDear, .algorithm = way.algorithm, .blocks = blocks});
    return add(trial_(bytes_, way.algorithm, blocks, {.us = budget_us(), .events = most_events_}));
  }

  double budget_us() const { return std::min(kHopeless * best_us_, most_us_); }

  /// Returns whether no number of blocks lets an algorithm meet `most_us`. One block for few bytes gives a lower bound
  /// if blocks share the bytes and not the PEs. The order of simultaneous events may change times a
  /// little.
  bool is_hopeless(Way& way) {
    constexpr double least_share = 0.97;
    if (most_us_ >= kNever || shares_pes(way.algorithm)) return false;
    const double enough_us = most_us_ / least_share;
    if (!way.is_least_exact && way.least_us < enough_us) {
      const SimulatedCall call = trial_(std::min(bytes_, few_bytes_), way.algorithm, way.blocks.front(),
                                        {.us = enough_us, .events = most_events_});
      way.is_least_exact = call.outcome != Outcome::kTooSlow;
      if (call.outcome == Outcome::kRan || call.outcome == Outcome::kTooSlow) way.least_us = call.us;
    }
    return way.least_us >= enough_us;
  }

  /// Events and memory grow with the blocks. A call that was too dear with some blocks is therefore not tried with
  /// more.
  bool is_surely_too_dear(const Way& way, int blocks) const {
    return std::any_of(tried_.begin(), tried_.end(), [&](const SimulatedCall& call) {
      return call.algorithm == way.algorithm && call.blocks < blocks && call.outcome == Outcome::kTooDear;
    });
  }

  static double us_of(const SimulatedCall& call) { return call.outcome == Outcome::kRan ? call.us : kNever; }

  /// Goes from the best number of blocks at the size before in both directions, while that gains.
  void climb(Way& way) {
    if (is_hopeless(way)) {
      way.us = kHopeless * best_us_;
      return;
    }
    SimulatedCall first = run(way, way.best);
    const bool is_cheap = first.events <= kDear;
    // It may be behind only for its number of blocks.
    for (const std::size_t index : others(way, is_cheap)) {
      if (first.outcome != Outcome::kTooSlow) break;
      std::size_t i = index;
      SimulatedCall other = run(way, i);
      if (other.outcome == Outcome::kTooDear && most_us_ < kNever) way.is_cut = true;
      // The number between the two may be enough.
      if (other.outcome == Outcome::kTooDear && i > way.best + 1) other = run(way, --i);
      if (other.outcome != Outcome::kRan) continue;
      way.best = i;
      first = other;
    }
    if (first.outcome == Outcome::kTooDear) way.is_cut = true;
    while (first.outcome == Outcome::kTooDear && way.best > 0) first = run(way, --way.best);
    // A way that was stopped is placed behind all that ended, and before those that cannot run.
    way.us = first.outcome == Outcome::kTooSlow ? budget_us() : us_of(first);
    if (first.outcome != Outcome::kRan) return;
    if (is_cheap)
      try_all(way);
    else
      for (const int direction : {1, -1}) follow(way, direction);
  }

  void try_all(Way& way) {
    double before_us = kNever;
    bool gains = true;  // from the number of blocks before
    for (std::size_t i = 0; i < way.blocks.size(); ++i) {
      const SimulatedCall call = run(way, i);
      if (call.outcome == Outcome::kTooDear) {
        way.is_cut = way.is_cut || gains;
        return;
      }
      gains = us_of(call) * kLevelOfDear <= before_us;
      before_us = us_of(call);
      if (call.outcome != Outcome::kRan || call.us >= way.us) continue;
      way.us = call.us;
      way.best = i;
    }
  }

  /// Returns the indices of blocks to try for a way that is behind. If simulations are cheap, this is every second
  /// number. Else it is a larger one, at the first size all larger ones, and the number of blocks of the quickest call.
  std::vector<std::size_t> others(const Way& way, bool is_cheap) const {
    constexpr std::size_t step = 2;
    std::vector<std::size_t> indices;
    for (std::size_t i = is_cheap ? way.best % step : way.best + step; i < way.blocks.size(); i += step) {
      indices.push_back(i);
      if (!is_first_ && !is_cheap) break;
    }
    for (std::size_t i = 0; i < way.blocks.size(); ++i)
      if (way.blocks[i] == blocks_of_quickest()) indices.push_back(i);
    return indices;
  }

  int blocks_of_quickest() const {
    for (const SimulatedCall& call : tried_)
      if (call.outcome == Outcome::kRan && call.us == best_us_) return call.blocks;
    return 0;
  }

  /// Fewer blocks cost fewer events, so all of them are tried until one is far behind. More blocks cost more. If they
  /// are dear, the first step that gains little is the last one.
  void follow(Way& way, int direction) {
    constexpr double level = 1.005;
    constexpr int most_misses = 2;
    std::size_t i = way.best;
    std::uint64_t events = 0;
    double gain = 2;
    for (int misses = 0; misses < most_misses;) {
      if ((direction < 0 && i == 0) || (direction > 0 && i + 1 >= way.blocks.size())) return;
      if (direction > 0 && 2 * events > most_events_) {
        way.is_cut = way.is_cut || gain >= kLevelOfDear;
        return;
      }
      i = direction > 0 ? i + 1 : i - 1;
      const SimulatedCall call = run(way, i);
      if (call.outcome == Outcome::kTooDear && direction > 0 && gain >= kLevelOfDear) way.is_cut = true;
      if (call.outcome != Outcome::kRan) return;
      events = call.events;
      gain = way.us / call.us;
      if (gain > 1) {
        way.us = call.us;
        way.best = i;
      }
      if (direction < 0) continue;
      if (events > kDear && gain < kLevelOfDear) return;
      misses = gain < level ? misses + 1 : 0;
    }
  }

  Trial trial_;
  std::uint64_t most_events_;
  Size few_bytes_;
  double most_us_ = kNever;
  std::vector<Way> ways_;
  Size bytes_ = 0;
  std::vector<SimulatedCall> tried_;
  double best_us_ = kNever;
  bool is_first_ = true;
};

}  // namespace tandem::bench
