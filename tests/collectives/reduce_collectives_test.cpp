/// Every reducing collective, over the grid of tests/support/collective_grid.h.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "support/collective_grid.h"
#include "support/collective_values.h"
#include "support/full_grid.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;

void expect_right(const CollectiveCase& c) {
  SCOPED_TRACE(describe(c));
  try {
    const CollectiveResult result = check_collective(c);
    EXPECT_EQ(result.wrong, 0) << result.first_wrong;
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

class ReducingAlgorithm : public ::testing::TestWithParam<AlgorithmInfo> {};

std::string test_name(const ::testing::TestParamInfo<AlgorithmInfo>& info) {
  return std::string(name(info.param.collective)) + "_" + info.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, ReducingAlgorithm, ::testing::ValuesIn(reducing_algorithms()), test_name);

TEST_P(ReducingAlgorithm, IsRightOnEveryPairOfFactors) {
  static const std::vector<CollectiveCase> cases = pairwise_cases();
  int run = 0;
  for (const CollectiveCase& c : cases) {
    if (c.collective != GetParam().collective || c.algorithm != GetParam().name) continue;
    expect_right(c);
    ++run;
  }
  EXPECT_GE(run, 20);
}

TEST_P(ReducingAlgorithm, IsRightOverManyCallsBackToBackUnderManySchedules) {
  for (const Layout& layout : {Layout{"h200x8", 1, 5}, Layout{"h100x8-rail", 3, 6}}) {
    if (!can_run(GetParam(), layout)) continue;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CollectiveCase c;
      c.collective = GetParam().collective;
      c.algorithm = GetParam().name;
      c.machine = layout.machine;
      c.nodes = layout.nodes;
      c.pes = layout.pes;
      c.count = seed % 2 == 0 ? 2 : 3000;  // of two elements a third is none
      c.calls = 9;
      c.blocks = 3;
      c.root = c.collective == Collective::kReduce ? 3 : 0;
      c.seed = seed;
      expect_right(c);
    }
  }
}

TEST_P(ReducingAlgorithm, HoldsTheSameBitsUnderEverySchedule) {
  CollectiveCase c;
  c.collective = GetParam().collective;
  c.algorithm = GetParam().name;
  c.pes = 7;
  c.count = 2000;
  c.random = true;
  const CollectiveResult first = check_collective(c);
  EXPECT_EQ(first.wrong, 0) << first.first_wrong;
  EXPECT_EQ(check_collective(c).trace_hash, first.trace_hash);
  // Another seed gives other data too; so the data keeps its seed, and the schedule gets another.
  for (c.schedule = 2; c.schedule < 6; ++c.schedule) {
    const CollectiveResult other = check_collective(c);
    EXPECT_EQ(other.data_hash, first.data_hash);
    EXPECT_NE(other.trace_hash, first.trace_hash);
  }
}

TEST_P(ReducingAlgorithm, RunsOnPartOfTheWorld) {
  struct Part {
    const char* machine;
    int nodes, pes, first, stride, size;
  };
  for (const Part& part : {Part{"h200x8", 1, 8, 1, 2, 3}, Part{"h100x8-rail", 2, 8, 4, 1, 4},
                           Part{"h100x8-rail", 3, 12, 1, 4, 3}, Part{"h100x8-rail", 2, 8, 1, 2, 4}}) {
    CollectiveCase c;
    c.collective = GetParam().collective;
    c.algorithm = GetParam().name;
    c.machine = part.machine;
    c.nodes = part.nodes;
    c.pes = part.pes;
    c.team_first = part.first;
    c.team_stride = part.stride;
    c.team_size = part.size;
    const int per_node = part.pes / part.nodes;
    const bool one_node = part.first / per_node == (part.first + (part.size - 1) * part.stride) / per_node;
    if ((GetParam().one_node_only && !one_node) || (GetParam().name == "multimem" && c.nodes > 1)) continue;
    expect_right(c);
  }
}

TEST_P(ReducingAlgorithm, RunsWithoutContentsInPhantomMode) {
  const auto time_us = [&](Size count) {
    SimOptions options;
    options.phantom = true;
    Simulation simulation(load_machine("h200x8"), 8, options);
    simulation.run([&](World& world) {
      CollectiveOptions plan_options;
      plan_options.type = DType::kU64;  // the type of signals and epochs, but data
      plan_options.max_count = count;
      plan_options.algorithm = GetParam().name;
      const auto plan = make_collective(world, GetParam().collective, plan_options);
      const auto in = world.heap().allocate<std::uint64_t>(8 * count, "in").as<const std::byte>();
      const auto out = world.heap().allocate<std::uint64_t>(8 * count, "out").as<std::byte>();
      Stream stream = world.make_stream("main");
      plan->run(stream, in, out, count);
      stream.synchronize();
    });
    return simulation.time_us();
  };
  EXPECT_GT(time_us(200'000), time_us(1000));
}

/// Case number `turn` of the whole grid; factors that are not given are drawn.
CollectiveCase grid_case(const AlgorithmInfo& info, const Layout& layout, DType type, ReduceOp op, const Amount& amount,
                         std::uint64_t turn) {
  const auto draw = [&](int factor, int values) {
    return static_cast<int>(mix(1, turn, factor, 0) % static_cast<std::uint64_t>(values));
  };
  CollectiveCase c;
  c.collective = info.collective;
  c.algorithm = info.name;
  c.machine = layout.machine;
  c.nodes = layout.nodes;
  c.pes = layout.pes;
  c.type = type;
  c.op = op;
  c.count = count_of(amount, c.collective, type, c.pes);
  c.in_place = draw(0, 2) == 1;
  c.random = draw(1, 2) == 1;
  c.blocks = draw(2, 4);
  c.root = c.collective == Collective::kReduce ? draw(3, c.pes) : 0;
  c.seed = 1 + static_cast<std::uint64_t>(draw(4, 20));
  return c;
}

/// Every algorithm, layout, type, operation and amount (of large amounts one operation each). Takes about half an hour.
TEST(ReducingCollectives, AreRightOnTheWholeGrid) {
  const auto shard = full_grid();
  if (!shard) GTEST_SKIP() << "set TANDEM_FULL=1 to run it, TANDEM_FULL=K/N for a part";
  std::uint64_t turn = 0;
  std::uint64_t number = 0;
  for (const AlgorithmInfo& info : reducing_algorithms())
    for (const Layout& layout : layouts()) {
      if (!can_run(info, layout)) continue;
      int cases = 0;
      for (const DType type : kDTypes)
        for (const Amount& amount : amounts()) {
          const std::uint64_t drawn = mix(2, ++turn, 0, 0) % std::size(kReduceOps);
          for (const ReduceOp op : kReduceOps) {
            if (!can_run(info, op) || !can_run(info, type)) continue;
            if (amount.bytes > 0 && drawn != static_cast<std::uint64_t>(op)) continue;
            ++turn;
            if (!shard->takes(number++)) continue;
            expect_right(grid_case(info, layout, type, op, amount, turn));
            ++cases;
          }
        }
      std::printf("%s %s, %dx%d of %s: %d cases\n", name(info.collective), info.name.c_str(), layout.nodes,
                  layout.pes / layout.nodes, layout.machine, cases);
      std::fflush(stdout);
    }
}

}  // namespace
}  // namespace tandem::test
