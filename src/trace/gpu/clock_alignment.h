#pragma once
/// How clocks of two GPUs (or of a host and a GPU) stand to each other, from timestamps that went to and fro.
///
/// D. L. Mills, "Internet time synchronization: the network time protocol" (1991): of many exchanges the fastest ones
/// tell most, since waiting on the way only makes them slower.

#include <cstdint>
#include <vector>

namespace tandem::trace {

/// Clock A was read, a message went to B, where clock B was read, and came back, when A was read again. Nanoseconds.
struct Exchange {
  std::int64_t sent = 0;      ///< A
  std::int64_t answered = 0;  ///< B
  std::int64_t received = 0;  ///< A
};

/// B - A, nanoseconds.
struct ClockOffset {
  std::int64_t at = 0;      ///< A's time at which it was measured
  std::int64_t offset = 0;  ///< Half-way between the two ways of the fastest exchanges.
  /// How far parts of the exchanges differ from the whole, and at least the clocks' step: the error, if both ways take
  /// equally long.
  double error = 0;
  /// Half of the fastest round trip: the error cannot be larger, however unlike the two ways are.
  double bound = 0;
};

/// Throws InvalidArgument where there are fewer than `kLeastExchanges`. `step`: resolution of the coarser clock.
ClockOffset estimate_offset(const std::vector<Exchange>& exchanges, double step);
inline constexpr std::size_t kLeastExchanges = 8;

/// Time of B as time of A, between (and beyond) two measurements: both clocks run evenly, but not equally fast.
class ClockMap {
 public:
  ClockMap() = default;  ///< the same clock
  ClockMap(const ClockOffset& first, const ClockOffset& last);

  /// Time of A when B shows `time`, nanoseconds.
  std::int64_t operator()(std::int64_t time) const;
  double error() const { return error_; }
  double bound() const { return bound_; }
  std::int64_t offset() const { return offset_; }
  /// How much faster B runs, in parts of a million.
  double drift_ppm() const { return slope_ * 1e6; }

 private:
  std::int64_t at_ = 0;      // of A
  std::int64_t offset_ = 0;  // then
  double slope_ = 0;
  double error_ = 0;
  double bound_ = 0;
};

}  // namespace tandem::trace
