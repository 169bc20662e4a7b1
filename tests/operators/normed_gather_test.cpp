/// all_gather_gemm whose A is normed first: exact results of every form and transport.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "operators/reference/normed_runs.h"
#include "support/host_pes.h"
#include "support/kept_memory.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

using ops::NormedRuns;

/// A form of all_gather_gemm, its transport and its chunks.
struct GatherWay {
  Form form;
  CopyBy copy_by;
  Direction direction;
  int splits;
};
constexpr GatherWay kGatherWays[] = {{Form::kOverlapped, CopyBy::kCopyEngine, Direction::kPush, 3},
                                     {Form::kOverlapped, CopyBy::kSm, Direction::kPush, 2},
                                     {Form::kSequential, CopyBy::kSm, Direction::kPush, 1},
                                     {Form::kOverlapped, CopyBy::kCopyEngine, Direction::kPull, 2},
                                     {Form::kOverlapped, CopyBy::kSm, Direction::kPull, 3},
                                     {Form::kSequential, CopyBy::kSm, Direction::kPush, 3},
                                     {Form::kSequential, CopyBy::kSm, Direction::kPull, 2},
                                     {Form::kDecomposed, CopyBy::kCopyEngine, Direction::kPush, 1},
                                     {Form::kSequential, CopyBy::kCopyEngine, Direction::kPull, 1}};

/// Tiles are 4 rows high, so a chunk has a multiple of 8 rows.
NormedRuns numbered_gather(int number) {
  const auto pick = [](const auto& list, int at) { return list[static_cast<std::size_t>(at) % std::size(list)]; };
  // Norm, residual, norm_bias and sum.
  constexpr OperatorNorm kGatherSteps[] = {{Norm::kRms, true, false, true},   {Norm::kLayer, true, true, true},
                                           {Norm::kRms, false, true, false},  {Norm::kNone, true, false, true},
                                           {Norm::kRms, true, false, false},  {Norm::kNone, true, false, false},
                                           {Norm::kLayer, false, false, true}};
  constexpr DType kGatherTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
  constexpr Size kGatherRows[] = {49, 1, 64, 0, 33};
  constexpr Size kHidden[] = {40, 136, 7, 300};
  const GatherWay& way = pick(kGatherWays, number);
  NormedRuns runs;
  runs.op = Operator::kAllGatherGemm;
  OperatorOptions& o = runs.options;
  o.m = pick(kGatherRows, number + number / 7);
  o.n = pick(kHidden, number + number / 5);
  if (number % 6 == 3) o.ns = {o.n / 2, o.n - o.n / 2};
  o.type = pick(kGatherTypes, number + number / 3);
  o.form = way.form;
  o.copy_by = way.copy_by;
  o.direction = way.direction;
  o.splits = way.splits;
  o.tile_m = 4;
  o.tile_n = 32;
  o.use_tuned = false;
  o.norm = pick(kGatherSteps, number + number / 9);
  runs.sum_in_residual = o.norm.residual && o.norm.norm_bias == (number % 2 == 0);
  runs.rows = {o.m, std::max<Size>(o.m - 1, 0), o.m / 2, o.m};
  runs.own_buffers = number % 4 == 1;
  return runs;
}

/// Each way with each kind of scales. All shards have several chunks.
NormedRuns quantised_gather(int number) {
  NormedRuns runs = numbered_gather(number);
  OperatorOptions& o = runs.options;
  const int kind = number / static_cast<int>(std::size(kGatherWays));
  o.type = DType::kE4M3;
  if (number % 2 == 0) o.out_type = DType::kF16;
  o.a_scale_per_row = kind == 0;
  o.block_scales = kind == 1;
  if (kind == 2) o.norm.scale = 0.5;
  o.m = 80 + number;
  runs.rows = {o.m, o.m - 1, o.m / 2, o.m};
  return runs;
}

std::string wrong_gather(World& world, const NormedRuns& runs) {
  try {
    Stream main = world.make_stream("main");
    return wrong_of_normed_runs(world, main, runs);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string describe(int number, const NormedRuns& runs, int pes) {
  const OperatorOptions& o = runs.options;
  return fmt::format("{}: {} by {} {} in {}, {}x{} {} on {} PEs", number, name(o.form), static_cast<int>(*o.copy_by),
                     static_cast<int>(o.direction), o.splits, o.m, o.n, name(o.type), pes);
}

TEST(NormedGather, IsExactInTheSimulator) {
  test::keep_memory();
  constexpr int kPes[] = {1, 2, 3, 5, 8};
  for (int number = 0; number < 90; ++number) {
    const NormedRuns runs = numbered_gather(number);
    const int pes = kPes[number % 5];
    Simulation simulation(load_machine("h200x8"), pes);
    simulation.run([&](World& world) { EXPECT_EQ(wrong_gather(world, runs), "") << describe(number, runs, pes); });
  }
}

TEST(NormedGather, OfFp8IsExact) {
  test::keep_memory();
  constexpr int kPes[] = {1, 2, 3, 5};
  for (int number = 0; number < 27; ++number) {
    const NormedRuns runs = quantised_gather(number);
    const int pes = kPes[number % 4];
    Simulation simulation(load_machine("h200x8"), pes);
    simulation.run([&](World& world) { EXPECT_EQ(wrong_gather(world, runs), "") << describe(number, runs, pes); });
    if (number % 3 == 0)
      test::HostPes(pes, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
        EXPECT_EQ(wrong_gather(world, runs), "") << describe(number, runs, pes);
        world.barrier();
      });
  }
}

TEST(NormedGather, IsExactBetweenNodes) {
  for (int number = 0; number < 18; ++number) {
    const NormedRuns runs = numbered_gather(number);
    SimOptions sim;
    sim.pes_per_node = 2;
    Simulation simulation(load_machine("h200x8"), 6, sim);
    simulation.run([&](World& world) { EXPECT_EQ(wrong_gather(world, runs), "") << describe(number, runs, 6); });
  }
}

TEST(NormedGather, IsExactOnAFullMesh) {
  for (int number = 0; number < 9; ++number) {
    const NormedRuns runs = numbered_gather(number);
    Simulation simulation(load_machine("mi300x8"), 4);
    simulation.run([&](World& world) { EXPECT_EQ(wrong_gather(world, runs), "") << describe(number, runs, 4); });
  }
}

TEST(NormedGather, IsExactOnCpus) {
  for (int number = 0; number < 18; ++number)
    test::HostPes(1 + number % 3, {.timeout_s = 60, .arrival_timeout_s = 120}).run([&](World& world) {
      EXPECT_EQ(wrong_gather(world, numbered_gather(number)), "")
          << describe(number, numbered_gather(number), 1 + number % 3);
      world.barrier();
    });
}

}  // namespace
}  // namespace tandem
