#include <gtest/gtest.h>

#include <optional>

#include "operators/resolve/resolve.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem::selection_test {
namespace {

constexpr int kSms = 132;

const ops::OperatorTable& h200() { return ops::operator_table(load_machine("h200x4")); }

TEST(SuitableTile, LeavesTheFewestSmsIdle) {
  EXPECT_EQ(ops::suitable_tile_n(h200(), 8192, 5120, 8192, kSms), 256);   // 9.7 waves
  EXPECT_EQ(ops::suitable_tile_n(h200(), 1024, 14336, 2048, kSms), 128);  // 6.8 waves, of 256 columns 3.4
  EXPECT_EQ(ops::suitable_tile_n(h200(), 8192, 8192, 2048, kSms),
            256);  // 15.5 waves, of 192 columns 20.8 with more overhead
  EXPECT_EQ(ops::suitable_tile_n(h200(), 128, 256, 8192, kSms), 128);  // a pair of tiles each to two SMs, not to one
}

TEST(SuitableTile, IsWideWhereTheDepthOfTheLastWaveIsShared) {
  EXPECT_EQ(ops::suitable_tile_n(h200(), 1024, 14336, 8192, kSms), 256);
  EXPECT_EQ(ops::suitable_tile_n(h200(), 8192, 8192, 14336, kSms), 256);
  EXPECT_EQ(ops::suitable_tile_n(h200(), 8192, 9216, 16384, kSms), 256);
}

TEST(SuitableTile, IsWideWhereTilesTakeLittleTime) {
  EXPECT_EQ(ops::suitable_tile_n(h200(), 1024, 14336, 2048, kSms), 128);
  EXPECT_EQ(ops::suitable_tile_n(h200(), 8192, 9216, 512, kSms), 256);
}

TEST(SuitableTile, IsNarrowWhereTheGemmWaitsForTheLink) {
  EXPECT_EQ(ops::suitable_tile_n(h200(), 8192, 2560, 8192, kSms), 256);
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 8192, 2560, 8192, 4, kSms), 128);
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 8192, 2560, 8192, 2, kSms), 256);
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 8192, 4608, 16384, 4, kSms), 128);
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 8192, 7168, 4096, 4, kSms), 256);   // many columns
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 1024, 14336, 8192, 4, kSms), 128);  // a shard of wide ones is no wave
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 1024, 28672, 8192, 2, kSms), 256);
  EXPECT_EQ(ops::suitable_gather_tile_n(h200(), 8192, 2560, 1024, 4, kSms),
            256);  // little depth: 8 % more for narrow tiles
}

TEST(SuitableTile, OfAChainLetsAShardBeAWave) {
  constexpr int kBesideSteps = 130;
  EXPECT_EQ(ops::suitable_tile_n(h200(), 1024, 8192, 7168, kBesideSteps), 256);
  EXPECT_EQ(ops::suitable_ring_tile_n(h200(), 1024, 8192, 7168, 4, kBesideSteps),
            128);  // 64 pairs of tiles a shard, of 65
  EXPECT_EQ(ops::suitable_ring_tile_n(h200(), 1024, 8192, 14336, 2, kBesideSteps),
            256);  // two PEs wait for nothing twice
  EXPECT_EQ(ops::suitable_ring_tile_n(h200(), 2048, 8192, 7168, 4, kBesideSteps), 256);
  EXPECT_EQ(ops::suitable_ring_tile_n(h200(), 1024, 4096, 3584, 4, kSms), 128);  // no width fills a wave
}

TEST(SelectedOptions, CopiesOfFewRowsHideBehindDeepTiles) {
  const auto copy_by = [](const char* machine, int pes, Size k) {
    std::optional<CopyBy> selected;
    Simulation(load_machine(machine), pes).run([&](World& world) {
      if (world.pe() != 0) return;
      selected = selected_options(world, Operator::kGemmReduceScatter, 1024, 8192, k, DType::kBF16).copy_by;
    });
    return selected;
  };
  EXPECT_EQ(copy_by("h200x4", 4, 28672), CopyBy::kCopyEngine);
  EXPECT_EQ(copy_by("h200x4", 4, 16384), CopyBy::kSm);
  EXPECT_EQ(copy_by("h200x2", 2, 28672), CopyBy::kCopyEngine);
  EXPECT_EQ(copy_by("h200x2", 2, 14336), CopyBy::kSm);
}

TEST(SelectedOptions, OfAPartOfAGpuTakeNoCopyEngine) {
  for (const auto op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const int copy_engines : {3, 0}) {
      Machine machine = load_machine("h200x4");
      machine.gpu.copy_engines = copy_engines;
      Simulation(machine, 4).run([&](World& world) {
        EXPECT_EQ(selected_options(world, op, 8192, 16384, 53248, DType::kBF16).copy_by,
                  copy_engines > 0 ? CopyBy::kCopyEngine : CopyBy::kSm)
            << name(op);
      });
    }
}

int gather_splits(const char* machine, int pes, Size n) {
  int splits = 0;
  Simulation(load_machine(machine), pes).run([&](World& world) {
    if (world.pe() == 0) splits = selected_options(world, Operator::kAllGatherGemm, 8192, n, 8192, DType::kBF16).splits;
  });
  return splits;
}

TEST(SelectedOptions, ShardsTravelInPartsWhereTheGemmWaitsForTheLink) {
  EXPECT_EQ(gather_splits("h200x4", 4, 10240), 4);
  EXPECT_EQ(gather_splits("h200x4", 4, 18432), 4);
  EXPECT_EQ(gather_splits("h200x4", 4, 28672), 1);
  EXPECT_EQ(gather_splits("h200x2", 2, 10240), 1);
  EXPECT_EQ(gather_splits("h200x2", 2, 5120), 1);
}

/// Returns the choices of a plan on GPUs for a problem, with the rows up to which it is sequential.
ops::ResolvedOptions selected(Operator op, const char* machine, int pes, const OperatorOptions& given) {
  ops::ResolvedOptions found;
  Simulation(load_machine(machine), pes, {.phantom = true, .plan_for = DeviceKind::kGpu}).run([&](World& world) {
    const ops::ResolvedOptions resolved = ops::resolve(world, op, given);
    if (world.pe() == 0) found = resolved;
  });
  return found;
}

ops::ResolvedOptions all_reduce(const char* machine, int pes, OperatorOptions given) {
  if (given.m == 0) given.m = 8192;
  given.n = 8192;
  return selected(Operator::kGemmAllReduce, machine, pes, given);
}

TEST(SelectedOptions, SumsOfMoreThanTwoPesAreFetchedBySms) {
  const OperatorOptions o = all_reduce("h200x4", 4, {.k = 8192}).options;
  EXPECT_EQ(o.reduction, Reduction::kChain);
  EXPECT_EQ(o.communication_sms, 4);
  EXPECT_EQ(o.splits, 2);
  EXPECT_EQ(o.copy_by, CopyBy::kCopyEngine);
  EXPECT_EQ(all_reduce("h200x4", 4, {.k = 28672}).options.splits, 4);
  const OperatorOptions fewer = all_reduce("h200x4", 4, {.m = 4096, .k = 8192}).options;
  EXPECT_EQ(fewer.copy_by, CopyBy::kSm);
  EXPECT_EQ(fewer.splits, 1);
  EXPECT_EQ(fewer.communication_sms, 4);
  const OperatorOptions of_two = all_reduce("h200x2", 2, {.k = 8192}).options;
  EXPECT_EQ(of_two.communication_sms, 0);
  EXPECT_EQ(of_two.splits, 8);
  EXPECT_EQ(all_reduce("h200x4", 1, {.k = 8192}).options.communication_sms, 0) << "nothing to fetch";
}

/// The fastest on two H200s, or the next to it.
TEST(SelectedOptions, ChunksOfTwoPesHaveAWaveOfTilesEach) {
  const auto splits = [](Size m, Size n) {
    return selected(Operator::kGemmAllReduce, "h200x2", 2, {.m = m, .n = n, .k = 28672}).options.splits;
  };
  EXPECT_EQ(splits(2048, 4096), 1);
  EXPECT_EQ(splits(3072, 4096), 2);
  EXPECT_EQ(splits(4096, 4096), 2);
  EXPECT_EQ(splits(8192, 4096), 4);
  EXPECT_EQ(splits(4096, 8192), 4);
  EXPECT_EQ(splits(2048, 8192), 2);
  EXPECT_EQ(splits(8192, 8192), 8);
  EXPECT_EQ(splits(16384, 16384), 8);
}

TEST(SelectedOptions, TheCallersReductionAndSmsStay) {
  EXPECT_EQ(all_reduce("h200x4", 4, {.k = 8192, .communication_sms = 0}).options.communication_sms, 0);
  const OperatorOptions o = all_reduce("h200x4", 4, {.k = 8192, .reduction = Reduction::kOwner}).options;
  EXPECT_EQ(o.reduction, Reduction::kOwner);
  EXPECT_GT(o.communication_sms, 0);  // the owners' own default
}

/// The form that was faster on four GPUs.
TEST(SequentialRows, OfAScatterAmongFourAreThoseOfShallowShardsOrHalfTiles) {
  const auto is_sequential = [](Size m, Size n, Size k) {
    const ops::ResolvedOptions found = selected(Operator::kGemmReduceScatter, "h200x4", 4, {.m = m, .n = n, .k = k});
    return found.options.form == Form::kSequential;
  };
  for (const auto& [n, k] : {std::pair<Size, Size>{8192, 28672}, {4096, 14336}, {8192, 8192}}) {
    EXPECT_TRUE(is_sequential(256, n, k)) << n;
    EXPECT_FALSE(is_sequential(1024, n, k)) << n;
    EXPECT_FALSE(is_sequential(2048, n, k)) << n;
  }
  EXPECT_TRUE(is_sequential(512, 8192, 28672));  // shards of half a pair of tiles
  EXPECT_TRUE(is_sequential(512, 16384, 53248));
  EXPECT_TRUE(is_sequential(512, 4096, 14336));
  EXPECT_FALSE(is_sequential(512, 8192, 8192));
}

TEST(SelectedOptions, StoresCarryTheChainOfLittleWork) {
  const auto copy_by = [](Size m, Size n, Size k) {
    return selected(Operator::kGemmReduceScatter, "h200x4", 4, {.m = m, .n = n, .k = k}).options.copy_by;
  };
  EXPECT_EQ(copy_by(2048, 8192, 8192), CopyBy::kSm);
  EXPECT_EQ(copy_by(2048, 4096, 14336), CopyBy::kSm);
  EXPECT_EQ(copy_by(8192, 8192, 8192), CopyBy::kCopyEngine);
  EXPECT_EQ(copy_by(8192, 4096, 14336), CopyBy::kCopyEngine);
  EXPECT_EQ(copy_by(1024, 8192, 28672), CopyBy::kCopyEngine);
}

TEST(SequentialRows, ManyRowsAreOverlapped) {
  for (const Size k : {8192, 28672}) EXPECT_LT(all_reduce("h200x2", 2, {.k = k}).sequential_rows, 8192);
  for (const Size m : {2048, 4096, 8192}) {
    EXPECT_EQ(all_reduce("h200x4", 4, {.m = m, .k = 8192}).sequential_rows, 1024) << m;
    EXPECT_LE(all_reduce("h200x4", 4, {.m = m, .k = 28672}).sequential_rows, 1024) << m;
  }
}

}  // namespace
}  // namespace tandem::selection_test
