#pragma once
/// Schedules: which of the things that may legally be late are, and by how much.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/run/monitor.h"
#include "tandem/check.h"

namespace tandem::checker {

/// splitmix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }

 private:
  std::uint64_t state_;
};

/// Nothing is late; counts the points where something could be.
class CountingSchedule final : public sim::Schedule {
 public:
  sim::Time delay(Point, int) override {
    ++points_;
    return 0;
  }
  int choose(int) override { return 0; }
  std::uint64_t points() const { return points_; }

 private:
  std::uint64_t points_ = 0;
};

/// The schedule that a seed stands for. `points`: how many an undisturbed run has.
std::unique_ptr<sim::Schedule> make_schedule(Strategy strategy, std::uint64_t seed, int pes, std::uint64_t points);

/// kDfs: how many schedules there are for so many points; seed s stands for number s - 1.
std::uint64_t dfs_schedules(std::uint64_t points);

}  // namespace tandem::checker
