#include "gemm/contract/stream_k.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tandem {
namespace {

constexpr StreamKCost kCost;

/// Returns the work of cluster `cluster` after the whole units.
std::vector<UnitPart> parts_of(const StreamK& shared, int cluster) {
  const auto i = static_cast<std::size_t>(cluster);
  return {shared.parts + shared.begin[i], shared.parts + shared.begin[i + 1]};
}

TEST(StreamK, NothingIsSharedWhereTheLastWaveIsFull) {
  for (const int units : {0, 66, 132, 6600}) {
    const StreamK shared = split_last_wave(units, 128, 66, kCost);
    EXPECT_EQ(shared.whole, units);
    EXPECT_EQ(shared.begin[66], 0);
    EXPECT_EQ(shared.steps, 128);
  }
}

TEST(StreamK, NothingIsSharedWhereTheExchangeTakesLongerThanTheRestOfTheWave) {
  EXPECT_EQ(split_last_wave(66 + 62, 112, 66, kCost).whole, 66 + 62);  // 7 of 112 steps idle
  EXPECT_LT(split_last_wave(66 + 26, 128, 66, kCost).whole, 66 + 26);  // 78
  EXPECT_EQ(split_last_wave(66 + 26, 12, 66, kCost).whole, 66 + 26);   // parts would be too short
}

/// Every step of every shared unit once; sums are left before they are waited for, and each at a place of its own.
void expect_right(int units, int depth, int clusters) {
  const std::string what = fmt::format("{} units of {} steps, {} clusters", units, depth, clusters);
  const StreamK shared = split_last_wave(units, depth, clusters, kCost);
  if (shared.whole == units) return;
  ASSERT_EQ(shared.whole, units - units % clusters) << what;
  EXPECT_LE(shared.steps + kCost.gain, depth) << what;
  std::vector<std::vector<int>> times(static_cast<std::size_t>(units % clusters),
                                      std::vector<int>(static_cast<std::size_t>(depth)));
  std::vector<int> giver(static_cast<std::size_t>(shared.places), clusters);
  std::vector<int> unit_at(static_cast<std::size_t>(shared.places), -1);
  for (int cluster = 0; cluster < clusters; ++cluster) {
    int steps = 0;
    for (const UnitPart& part : parts_of(shared, cluster)) {
      ASSERT_GE(part.count, kCost.least) << what;
      for (int i = part.first; i < part.first + part.count; ++i)
        ++times.at(static_cast<std::size_t>(part.unit)).at(static_cast<std::size_t>(i));
      steps += part.count;
      if (part.others != UnitPart::kGives) {
        ASSERT_EQ(part.first + part.count, depth) << what;
        for (int place = part.place; place < part.place + part.others; ++place) {
          EXPECT_LT(giver.at(static_cast<std::size_t>(place)), cluster) << what;
          EXPECT_EQ(unit_at.at(static_cast<std::size_t>(place)), part.unit) << what;
          giver[static_cast<std::size_t>(place)] = clusters;  // read once
        }
        steps += part.others * kCost.add;
        continue;
      }
      ASSERT_EQ(giver.at(static_cast<std::size_t>(part.place)), clusters) << what;
      giver[static_cast<std::size_t>(part.place)] = cluster;
      unit_at[static_cast<std::size_t>(part.place)] = part.unit;
      steps += kCost.give;
    }
    EXPECT_LE(steps, shared.steps) << what;
  }
  EXPECT_EQ(std::ranges::count(giver, clusters), shared.places) << what << ": what is left is read";
  for (const auto& of_unit : times) EXPECT_EQ(of_unit, std::vector<int>(of_unit.size(), 1)) << what;
}

TEST(StreamK, EachStepIsComputedOnceAndEachSumReadOnce) {
  for (const int clusters : {1, 2, 3, 60, 64, 66})
    for (const int depth : {1, 16, 31, 64, 128, 256, 832})
      for (int rest = 0; rest < clusters; ++rest)
        for (const int whole : {0, 3 * clusters}) expect_right(whole + rest, depth, clusters);
}

TEST(StreamK, TheWaveIsAboutAsShortAsItCanBe) {
  struct Wave {
    int units, depth, ideal;  // steps, if exchanging sums cost nothing
  };
  for (const Wave& w : {Wave{896, 64, 37}, {576, 256, 186}, {224, 128, 50}, {3328, 256, 109}}) {
    const int steps = split_last_wave(w.units, w.depth, 66, kCost).steps;
    EXPECT_GE(steps, w.ideal);
    EXPECT_LE(steps, w.ideal + kCost.give + kCost.add + 4);
  }
}

}  // namespace
}  // namespace tandem
