#pragma once
/// The offset between the clocks of two GPUs (or of a host and a GPU), from timestamps of messages in both directions.
///
/// D. L. Mills, "Internet time synchronization: the network time protocol" (1991). The fastest exchanges are the most
/// accurate, because delays only make them slower.

#include <cstdint>
#include <vector>

namespace tandem::trace {

/// One exchange in nanoseconds. Clock A is read, a message goes to B, clock B is read, a message returns, and A is read
/// again.
struct Exchange {
  std::int64_t sent = 0;      ///< A
  std::int64_t answered = 0;  ///< B
  std::int64_t received = 0;  ///< A
};

/// The difference B - A in nanoseconds.
struct ClockOffset {
  std::int64_t at = 0;      ///< A's time of the measurement
  std::int64_t offset = 0;  ///< midpoint of the fastest exchanges
  /// The error if both directions take equally long: the spread over parts of the exchanges, and at least the clocks'
  /// step.
  double error = 0;
  /// Half of the fastest round trip, which bounds the error for any two directions.
  double bound = 0;
};

/// Throws InvalidArgument for fewer than `kLeastExchanges` exchanges. `step` is the resolution of the coarser clock.
ClockOffset estimate_offset(const std::vector<Exchange>& exchanges, double step);
inline constexpr std::size_t kLeastExchanges = 8;

/// Converts times of B to times of A, between and beyond two measurements. Both clocks are linear, at different rates.
class ClockMap {
 public:
  ClockMap() = default;  ///< the same clock
  ClockMap(const ClockOffset& first, const ClockOffset& last);

  /// Returns the time of A when B shows `time`, in nanoseconds.
  std::int64_t operator()(std::int64_t time) const;
  double error() const { return error_; }
  double bound() const { return bound_; }
  std::int64_t offset() const { return offset_; }
  /// Returns by how much B is faster, in parts per million.
  double drift_ppm() const { return slope_ * 1e6; }

 private:
  std::int64_t at_ = 0;      // of A
  std::int64_t offset_ = 0;  // at that time
  double slope_ = 0;
  double error_ = 0;
  double bound_ = 0;
};

}  // namespace tandem::trace
