#include "tune/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::tune {
namespace {

Group empty_group(Collective collective, int pes) {
  Group group;
  group.collective = collective;
  group.pes = pes;
  group.source = "made up";
  return group;
}

TEST(Sweep, TakesTheQuickestOfEachSizeUpToTheGeometricMeanWithTheNext) {
  const Group group = with_choices(empty_group(Collective::kAllReduce, 2), {{1000, "one_shot", 4, 3.0},
                                                                            {1000, "ring", 4, 2.0},
                                                                            {4000, "one_shot", 4, 2.5},
                                                                            {4000, "ring", 4, 3.5},
                                                                            {16000, "one_shot", 8, 5.0}});
  ASSERT_EQ(group.sizes.size(), 3U);
  EXPECT_EQ(group.sizes[0].algorithm, "ring");
  EXPECT_EQ(group.sizes[0].up_to_bytes, 2000);
  EXPECT_EQ(*group.sizes[0].measured_bytes, 1000);
  EXPECT_EQ(*group.sizes[0].us, 2.0);
  EXPECT_EQ(group.sizes[1].algorithm, "one_shot");
  EXPECT_EQ(group.sizes[1].up_to_bytes, 8000);
  EXPECT_EQ(group.sizes[2].blocks, 8);
  EXPECT_EQ(group.sizes[2].up_to_bytes, kAnySize);
  EXPECT_EQ(parse_selection(to_text({"n", "d", {}, {group}}), "it").groups.size(), 1U);
}

TEST(Sweep, KeepsTheChoiceOfTheSizeBeforeWithinAnotherPerCent) {
  const auto chosen = [](double us) {
    return with_choices(
               empty_group(Collective::kAllReduce, 2),
               {{1000, "ring", 4, 2.0}, {2000, "ring", 16, 3.0}, {2000, "ring", 8, 3.02}, {2000, "ring", 4, us}})
        .sizes[1]
        .blocks;
  };
  EXPECT_EQ(chosen(3.05), 4);
  EXPECT_EQ(chosen(3.06), 8);
}

TEST(Sweep, DoesNotKeepAChoiceThatTakesMoreBlocks) {
  const Group group =
      with_choices(empty_group(Collective::kAllReduce, 2),
                   {{1000, "ring", 128, 2.0}, {2000, "ring", 128, 3.05}, {2000, "copy_engine", 0, 3.0}});
  EXPECT_EQ(group.sizes[1].algorithm, "copy_engine");
}

TEST(Sweep, OfEqualsTakesTheOneWithTheFewestBlocks) {
  const Group group = with_choices(empty_group(Collective::kAllReduce, 2),
                                   {{1000, "ring", 32, 2.0}, {1000, "ring", 16, 2.01}, {1000, "ring", 8, 2.1}});
  EXPECT_EQ(group.sizes[0].blocks, 16);
}

TEST(Sweep, AGroupTakesThePlaceOfItsPredecessorAlone) {
  SelectionTable table;
  for (const int pes : {4, 2})
    put(table, with_choices(empty_group(Collective::kAllReduce, pes), {{1000, "ring", 4, 2.0}}));
  put(table, with_choices(empty_group(Collective::kAllReduce, 2), {{1000, "tree", 4, 2.0}}));
  ASSERT_EQ(table.groups.size(), 2U);
  EXPECT_EQ(table.groups[0].pes, 2);
  EXPECT_EQ(table.groups[0].sizes[0].algorithm, "tree");
  EXPECT_EQ(table.groups[1].sizes[0].algorithm, "ring");
}

TEST(Sweep, TriesEveryAlgorithmThatTheTeamCanRun) {
  for (const bool one_node : {true, false})
    for (const AlgorithmInfo& info : collective_algorithms()) {
      const auto all = candidates(info.collective, one_node);
      const bool tried =
          std::any_of(all.begin(), all.end(), [&](const Candidate& c) { return c.algorithm == info.name; });
      EXPECT_EQ(tried, one_node || !info.one_node_only) << info.name;
    }
  for (const Candidate& candidate : candidates(Collective::kAllReduce, true, "ring"))
    EXPECT_EQ(candidate.algorithm, "ring");
}

TEST(Sweep, TriesPacketsOfSmallSizesOnly) {
  for (const char* const name : {"pull", "ll", "one_shot_ll"}) {
    const bool packets = std::string(name) != "pull";
    const Collective collective = std::string(name) == "ll"     ? Collective::kAllGather
                                  : std::string(name) == "pull" ? Collective::kReduceScatter
                                                                : Collective::kAllReduce;
    const auto all = candidates(collective, true, name);
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().most_bytes < (Size{1} << 30), packets) << name;
    EXPECT_EQ(all.back().blocks, packets ? 32 : 128) << name;
  }
}

TEST(Sweep, DropsSlowCandidatesOnlyWhereBandwidthCounts) {
  constexpr Size mib = Size{1} << 20;
  Contest contest({{"ring", 1, kAnySize}, {"ring", 8, kAnySize}, {"one_shot_ll", 1, mib}});
  EXPECT_EQ(contest.at(1024).size(), 3U);
  contest.add(1024, {{0, "ring", 1, 100}, {0, "ring", 8, 30}, {0, "one_shot_ll", 1, 1}});
  EXPECT_EQ(contest.at(mib).size(), 3U);
  contest.add(mib, {{0, "ring", 1, 100}, {0, "ring", 8, 30}, {0, "one_shot_ll", 1, 90}});
  const auto left = contest.at(4 * mib);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].blocks, 8);
  contest.add(4 * mib, {{0, "ring", 8, 200}});
  EXPECT_EQ(contest.at(1024 * mib).size(), 1U);
}

TEST(Sweep, LeavesOutAtSmallSizesWhoTookLongerThanTheBestCan) {
  Contest contest({{"ring", 1, kAnySize}, {"copy_engine", 0, kAnySize}, {"ll", 1, kAnySize}});
  contest.add(1024, {{0, "ring", 1, 5.9}, {0, "copy_engine", 0, 25}, {0, "ll", 1, 2}});
  const auto at_double = contest.at(2048);  // the best takes at most 4 there, with noise 6
  ASSERT_EQ(at_double.size(), 2U);
  EXPECT_EQ(at_double[0].algorithm, "ring");
  EXPECT_EQ(at_double[1].algorithm, "ll");
  contest.add(2048, {{0, "ring", 1, 6}, {0, "ll", 1, 4}});
  EXPECT_EQ(contest.at(4096).size(), 2U);
  contest.add(4096, {{0, "ring", 1, 12}, {0, "ll", 1, 9}});
  EXPECT_EQ(contest.at(8192).size(), 3U);  // what took 25 may have its turn again
}

TEST(Sweep, TriesCopyEnginesAtEverySizeThoughTheyBeginLate) {
  constexpr Size mib = Size{1} << 20;
  Contest contest({{"push", 128, kAnySize}, {"copy_engine_push", 0, kAnySize}});
  contest.add(mib, {{0, "push", 128, 5}, {0, "copy_engine_push", 0, 30}});
  EXPECT_EQ(contest.at(4 * mib).size(), 2U);
  contest.add(4 * mib, {{0, "push", 128, 10}});
  EXPECT_EQ(contest.at(16 * mib).size(), 2U);
}

}  // namespace
}  // namespace tandem::tune
