#include "trace/gpu/clock_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/error.h"

namespace tandem::trace {

namespace {

std::int64_t round_trip(const Exchange& e) { return e.received - e.sent; }

/// Returns twice the offset of one exchange minus twice `base`. Subtracting `base` keeps the numbers exact in a double.
double twice_offset(const Exchange& e, std::int64_t base) {
  return static_cast<double>((e.answered - base - e.sent) + (e.answered - base - e.received));
}

double mean_offset(const std::vector<Exchange>& exchanges, std::size_t begin, std::size_t end, std::int64_t base) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += twice_offset(exchanges[i], base) / 2;
  return sum / static_cast<double>(end - begin);
}

}  // namespace

ClockOffset estimate_offset(const std::vector<Exchange>& exchanges, double step) {
  if (exchanges.size() < kLeastExchanges)
    throw InvalidArgument(
        fmt::format("clock alignment: {} exchanges given, {} are needed", exchanges.size(), kLeastExchanges));
  std::vector<std::int64_t> trips;
  trips.reserve(exchanges.size());
  for (const Exchange& e : exchanges) trips.push_back(round_trip(e));
  // The fastest quarter is free of delayed messages, and large enough to average out the clocks' steps.
  const auto quarter = trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 4);
  std::nth_element(trips.begin(), quarter, trips.end());
  std::vector<Exchange> fast;
  for (const Exchange& e : exchanges)
    if (round_trip(e) <= *quarter) fast.push_back(e);

  const std::int64_t base = fast.front().answered - fast.front().sent;
  const double offset = mean_offset(fast, 0, fast.size(), base);
  constexpr std::size_t kParts = 4;
  double apart = 0;
  for (std::size_t part = 0; part < kParts && fast.size() >= kParts; ++part) {
    const double own = mean_offset(fast, part * fast.size() / kParts, (part + 1) * fast.size() / kParts, base);
    apart = std::max(apart, std::abs(own - offset));
  }
  ClockOffset result;
  result.at = fast[fast.size() / 2].sent;
  result.offset = base + std::llround(offset);
  result.error = std::max(apart, step);
  result.bound = static_cast<double>(*std::min_element(trips.begin(), trips.end())) / 2;
  return result;
}

ClockMap::ClockMap(const ClockOffset& first, const ClockOffset& last)
    : at_(first.at),
      offset_(first.offset),
      error_(std::max(first.error, last.error)),
      bound_(std::max(first.bound, last.bound)) {
  if (last.at > first.at)
    slope_ = static_cast<double>(last.offset - first.offset) / static_cast<double>(last.at - first.at);
}

std::int64_t ClockMap::operator()(std::int64_t time) const {
  // A's time `a` at which B shows t satisfies a + offset + slope (a - at) = t. Large terms are integers; the rest is
  // small.
  const std::int64_t since = time - offset_ - at_;
  return at_ + since - std::llround(slope_ * static_cast<double>(since) / (1 + slope_));
}

}  // namespace tandem::trace
