#pragma once
/// Schedules: the choice of legal delays, and their lengths.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/run/monitor.h"
#include "tandem/check.h"

namespace tandem::checker {

/// The random generator splitmix64 (Steele, Lea and Flood 2014).
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

/// Delays nothing, and counts the points where a delay would be legal.
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

/// Makes the schedule of a seed. `points` is the number of points of an undisturbed run.
std::unique_ptr<sim::Schedule> make_schedule(const CheckOptions& options, std::uint64_t seed, std::uint64_t points);

/// Returns the number of schedules of kDfs for so many points. Seed s stands for schedule number s - 1.
std::uint64_t dfs_schedules(std::uint64_t points);

}  // namespace tandem::checker
