#include <gtest/gtest.h>

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

int gather_splits(const char* machine, int pes, Size n) {
  int splits = 0;
  Simulation(load_machine(machine), pes).run([&](World& world) {
    if (world.pe() == 0) splits = selected_options(world, Operator::kAllGatherGemm, 8192, n, 8192, DType::kBF16).splits;
  });
  return splits;
}

TEST(SelectedOptions, ShardsTravelInPartsWhereTheLinkIsAsSlowAsTheGemm) {
  EXPECT_EQ(gather_splits("h200x4", 4, 10240), 4);
  EXPECT_EQ(gather_splits("h200x4", 4, 28672), 1);
  EXPECT_EQ(gather_splits("h200x2", 2, 10240), 1);
  EXPECT_EQ(gather_splits("h200x2", 2, 5120), 1);
}

}  // namespace
}  // namespace tandem
