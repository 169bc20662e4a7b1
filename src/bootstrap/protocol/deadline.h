#pragma once
/// The end of a bounded wait.

#include <algorithm>
#include <chrono>

namespace tandem::bootstrap {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  explicit Deadline(double seconds)
      : at_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(std::clamp(seconds, 0.0, kMostSeconds)))) {}

  bool passed() const { return Clock::now() >= at_; }
  /// Returns the remaining time for poll(): at least 0, rounded up.
  int milliseconds() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
  }
  Clock::time_point at() const { return at_; }

 private:
  static constexpr double kMostSeconds = 1e6;

  Clock::time_point at_;
};

}  // namespace tandem::bootstrap
