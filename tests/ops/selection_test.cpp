#include <gtest/gtest.h>

#include <optional>

#include "ops/operator_defaults.h"
#include "tandem/operators.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

constexpr int kSms = 132;

TEST(SuitableTile, LeavesTheFewestSmsIdle) {
  EXPECT_EQ(ops::suitable_tile_n(8192, 5120, 8192, kSms), 256);   // 9.7 waves
  EXPECT_EQ(ops::suitable_tile_n(1024, 14336, 8192, kSms), 128);  // 6.8 waves, of 256 columns 3.4
  EXPECT_EQ(ops::suitable_tile_n(8192, 8192, 14336, kSms), 192);  // 20.8 waves, of 256 columns 15.5
  EXPECT_EQ(ops::suitable_tile_n(128, 256, 8192, kSms), 128);     // a pair of tiles each to two SMs, not to one
}

TEST(SuitableTile, IsWideWhereTilesTakeLittleTime) {
  EXPECT_EQ(ops::suitable_tile_n(8192, 9216, 16384, kSms), 128);
  EXPECT_EQ(ops::suitable_tile_n(8192, 9216, 512, kSms), 256);
}

TEST(SuitableTile, IsNarrowWhereTheGemmWaitsForTheLink) {
  EXPECT_EQ(ops::suitable_tile_n(8192, 2560, 8192, kSms), 256);
  EXPECT_EQ(ops::suitable_gather_tile_n(8192, 2560, 8192, 4, kSms), 128);
  EXPECT_EQ(ops::suitable_gather_tile_n(8192, 2560, 8192, 2, kSms), 256);
  EXPECT_EQ(ops::suitable_gather_tile_n(8192, 4608, 16384, 4, kSms), 128);
  EXPECT_EQ(ops::suitable_gather_tile_n(8192, 7168, 4096, 4, kSms), 256);  // many columns
  EXPECT_EQ(ops::suitable_gather_tile_n(8192, 2560, 1024, 4, kSms), 256);  // little depth: 8 % more for narrow tiles
}

TEST(SuitableTile, OfAChainLetsAShardBeAWave) {
  constexpr int kBesideSteps = 130;
  EXPECT_EQ(ops::suitable_tile_n(1024, 8192, 7168, kBesideSteps), 256);
  EXPECT_EQ(ops::suitable_chain_tile_n(1024, 8192, 7168, 4, kBesideSteps), 128);   // 64 pairs of tiles a shard, of 65
  EXPECT_EQ(ops::suitable_chain_tile_n(1024, 8192, 14336, 2, kBesideSteps), 256);  // two PEs wait for nothing twice
  EXPECT_EQ(ops::suitable_chain_tile_n(2048, 8192, 7168, 4, kBesideSteps), 256);
  EXPECT_EQ(ops::suitable_chain_tile_n(1024, 4096, 3584, 4, kSms), 128);  // no width fills a wave
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

}  // namespace
}  // namespace tandem
