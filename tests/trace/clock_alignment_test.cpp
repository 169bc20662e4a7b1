#include "trace/gpu/clock_alignment.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tandem/error.h"

namespace tandem::trace {
namespace {

/// Two clocks: B is `offset` ahead at A's time 0 and runs faster by `drift`; both show multiples of `step`.
struct Clocks {
  std::int64_t offset = 0;
  double drift = 0;
  std::int64_t step = 1;

  std::int64_t a(double time) const { return static_cast<std::int64_t>(std::floor(time / step)) * step; }
  std::int64_t b(double time) const {
    return static_cast<std::int64_t>(std::floor(time * (1 + drift) / static_cast<double>(step))) * step + offset;
  }
};

/// Exchanges of 700 ns one way and `back` the other, some of them held up by up to 5 us.
std::vector<Exchange> exchanges(const Clocks& clocks, double begin, std::uint32_t seed, double back = 700) {
  std::mt19937 random(seed);
  std::vector<Exchange> list;
  double now = begin;
  for (int i = 0; i < 1000; ++i) {
    const double delay_there = random() % 2 == 0 ? 0 : random() % 5000;
    const double delay_back = random() % 3 == 0 ? random() % 5000 : 0;
    const double there = now + 700 + delay_there;
    const double received = there + back + delay_back;
    list.push_back({clocks.a(now), clocks.b(there), clocks.a(received)});
    now = received + 10 + random() % 97;
  }
  return list;
}

TEST(ClockAlignment, FindsTheOffsetOfFineClocks) {
  for (const std::int64_t offset :
       {std::int64_t{0}, std::int64_t{-123'456'789}, std::int64_t{1'700'000'000'000'000'000}}) {
    const ClockOffset found = estimate_offset(exchanges({offset, 0, 1}, 1e9, 1), 1);
    EXPECT_NEAR(static_cast<double>(found.offset - offset), 0, 1);
    EXPECT_LE(found.error, 2);
    EXPECT_NEAR(found.bound, 700, 2);
  }
}

TEST(ClockAlignment, AveragesTheStepsOfCoarseClocksOut) {
  const std::int64_t offset = 5'000'007 * 32;
  const ClockOffset found = estimate_offset(exchanges({offset, 0, 32}, 1e9, 7), 32);
  EXPECT_NEAR(static_cast<double>(found.offset - offset), 0, 16);
  EXPECT_GE(found.error, 32);
}

TEST(ClockAlignment, WaysThatDifferStayWithinTheBound) {
  const ClockOffset found = estimate_offset(exchanges({1000, 0, 1}, 1e9, 3, 1500), 1);
  EXPECT_NEAR(static_cast<double>(found.offset), 1000 - 400, 2);  // half the difference of the two ways
  EXPECT_GT(found.bound, std::abs(static_cast<double>(found.offset) - 1000));
}

TEST(ClockAlignment, NeedsExchanges) {
  EXPECT_THROW(estimate_offset({}, 1), InvalidArgument);
  EXPECT_THROW(estimate_offset(std::vector<Exchange>(kLeastExchanges - 1), 1), InvalidArgument);
}

TEST(ClockMap, SameClock) {
  const ClockMap same;
  EXPECT_EQ(same(1'700'000'000'000'000'123), 1'700'000'000'000'000'123);
}

TEST(ClockMap, FollowsDriftBetweenTwoMeasurements) {
  const Clocks clocks{3'000'000'000'000, 20e-6, 1};
  const ClockMap map(estimate_offset(exchanges(clocks, 1e9, 1), 1), estimate_offset(exchanges(clocks, 4e9, 2), 1));
  EXPECT_NEAR(map.drift_ppm(), 20, 0.01);
  for (const double time : {1e9, 1.5e9, 2.0e9 + 12'345, 4e9})
    EXPECT_NEAR(static_cast<double>(map(clocks.b(time))), time, 3);
}

TEST(ClockMap, KeepsTheOrderOfTimes) {
  const Clocks clocks{-77, -35e-6, 32};
  const ClockMap map(estimate_offset(exchanges(clocks, 1e9, 5), 32), estimate_offset(exchanges(clocks, 2e9, 6), 32));
  std::int64_t last = map(1'000'000'000);
  for (std::int64_t time = 1'000'000'032; time < 1'000'010'000; time += 32) {
    const std::int64_t next = map(time);
    EXPECT_NEAR(static_cast<double>(next - last), 32, 1);
    last = next;
  }
}

}  // namespace
}  // namespace tandem::trace
