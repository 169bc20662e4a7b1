#include "check/schedules.h"

#include <algorithm>
#include <array>

namespace tandem::checker {

namespace {

using sim::kMicrosecond;
using sim::Time;

/// Three things that may happen to streams, each with some of the seeds.
class SeededSchedule : public sim::Schedule {
 public:
  SeededSchedule(const CheckOptions& options, std::uint64_t seed)
      : seed_(seed), one_kernel_(options.one_kernel_at_a_time && (seed & 7) == 4) {}
  bool places_early() const override { return (seed_ & 1) != 0; }
  bool fills_sms() const override { return true; }
  bool has_one_queue() const override { return (seed_ & 2) != 0; }
  bool runs_one_kernel() const override { return one_kernel_; }

 private:
  std::uint64_t seed_;
  bool one_kernel_;
};

class RandomSchedule final : public SeededSchedule {
 public:
  RandomSchedule(const CheckOptions& options, std::uint64_t seed) : SeededSchedule(options, seed), random_(seed) {}

  Time delay(Point point, int) override {
    // Host programs start at any time (stragglers). A quarter of everything else is late.
    if (point == Point::kHostStart) return at_most(50 * kMicrosecond);
    return random_.below(4) == 0 ? at_most(20 * kMicrosecond) : 0;
  }
  int choose(int count) override { return static_cast<int>(random_.below(static_cast<std::uint64_t>(count))); }

 private:
  Time at_most(Time most) { return static_cast<Time>(random_.below(static_cast<std::uint64_t>(most))); }

  Random random_;
};

/// PEs of low priority are slow in everything; at the change points the PE that is about to act becomes the slowest.
class PctSchedule final : public SeededSchedule {
 public:
  PctSchedule(const CheckOptions& options, std::uint64_t seed, std::uint64_t points)
      : SeededSchedule(options, seed), random_(seed) {
    for (int pe = 0; pe < options.pes; ++pe) rank_.push_back(pe);
    for (std::size_t i = rank_.size(); i > 1; --i) std::swap(rank_[i - 1], rank_[random_.below(i)]);
    for (std::uint64_t& change : changes_) change = random_.below(points);
    lowest_ = options.pes;
  }

  Time delay(Point, int pe) override {
    const auto at = static_cast<std::size_t>(pe);
    if (std::find(changes_.begin(), changes_.end(), point_++) != changes_.end()) rank_[at] = lowest_++;
    return rank_[at] * 5 * kMicrosecond;
  }
  int choose(int count) override { return static_cast<int>(random_.below(static_cast<std::uint64_t>(count))); }

 private:
  Random random_;
  std::vector<int> rank_;  // by PE; 0 is the fastest
  std::array<std::uint64_t, 3> changes_{};
  std::uint64_t point_ = 0;
  int lowest_ = 0;
};

/// A few points are late by far.
class DelaySchedule final : public sim::Schedule {
 public:
  explicit DelaySchedule(std::vector<std::uint64_t> late) : late_(std::move(late)) {}

  Time delay(Point, int) override {
    return std::find(late_.begin(), late_.end(), point_++) != late_.end() ? 100 * kMicrosecond : 0;
  }
  int choose(int) override { return 0; }

 private:
  std::vector<std::uint64_t> late_;
  std::uint64_t point_ = 0;
};

/// Number `n` of: none late, each one late, each pair late.
std::vector<std::uint64_t> dfs_choice(std::uint64_t n, std::uint64_t points) {
  if (n == 0) return {};
  if (--n < points) return {n};
  n -= points;
  for (std::uint64_t first = 0; first + 1 < points; ++first) {
    const std::uint64_t pairs = points - 1 - first;
    if (n < pairs) return {first, first + 1 + n};
    n -= pairs;
  }
  return {};
}

}  // namespace

std::uint64_t dfs_schedules(std::uint64_t points) { return 1 + points + points * (points - (points > 0 ? 1 : 0)) / 2; }

std::unique_ptr<sim::Schedule> make_schedule(const CheckOptions& options, std::uint64_t seed, std::uint64_t points) {
  switch (options.strategy) {
    case Strategy::kRandom:
      return std::make_unique<RandomSchedule>(options, seed);
    case Strategy::kPct:
      return std::make_unique<PctSchedule>(options, seed, points);
    case Strategy::kDelay: {
      Random random(seed);
      return std::make_unique<DelaySchedule>(
          std::vector<std::uint64_t>{random.below(points), random.below(points), random.below(points)});
    }
    case Strategy::kDfs:
      return std::make_unique<DelaySchedule>(dfs_choice(seed == 0 ? 0 : seed - 1, points));
  }
  return nullptr;
}

}  // namespace tandem::checker
