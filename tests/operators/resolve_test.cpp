// The order of precedence of the sources of options: caller, cache, table, rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>
#include <utility>

#include "operators/resolve/resolve.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/simulation.h"
#include "trace/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

const OperatorOptions kProblem{.m = 8192, .n = 8192, .k = 28672};

class Resolve : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv(kOperatorCacheVariable); }

  static ops::ResolvedOptions resolve(Operator op, const OperatorOptions& given,
                                      DeviceKind device = DeviceKind::kSimulated) {
    ops::ResolvedOptions found;
    Simulation(load_machine("h200x4"), 4, {.phantom = true, .plan_for = device}).run([&](World& world) {
      const ops::ResolvedOptions resolved = ops::resolve(world, op, given);
      if (world.pe() == 0) found = resolved;
    });
    return found;
  }

  /// A cache with one configuration of the problem.
  void fill_cache(Operator op, const OperatorOptions& configuration) {
    TunedOperator tuned;
    Simulation(load_machine("h200x4"), 4, {.phantom = true}).run([&](World& world) {
      if (world.pe() == 0) tuned.key = operator_key(world, op, kProblem);
    });
    tuned.options = configuration;
    store_tuned(folder_ / "cache.json", tuned);
    ::setenv(kOperatorCacheVariable, (folder_ / "cache.json").c_str(), 1);
  }

  trace::testing::TemporaryFolder folder_;
};

OptionChoice choice(const ops::ResolvedOptions& resolved, const std::string& option) {
  for (const OptionChoice& choice : resolved.choices)
    if (choice.option == option) return choice;
  ADD_FAILURE() << "no option " << option;
  return {};
}

std::string source(const ops::ResolvedOptions& resolved, const std::string& option) {
  return name(choice(resolved, option).source);
}

/// gemm_reduce_scatter of four PEs: the sources disagree about the number of chunks.
constexpr Operator kScatter = Operator::kGemmReduceScatter;

OperatorOptions cached() {
  OperatorOptions o = kProblem;
  o.form = Form::kOverlapped;
  o.copy_by = CopyBy::kSm;
  o.reduction = Reduction::kOwner;
  o.splits = 4;
  return o;
}

TEST_F(Resolve, TheRuleCountsWithoutAnyOtherSource) {
  const auto resolved = resolve(kScatter, kProblem);
  EXPECT_EQ(resolved.options.splits, 1);
  EXPECT_EQ(source(resolved, "splits"), "rule");
  EXPECT_EQ(source(resolved, "form"), "rule");
}

TEST_F(Resolve, TheTableComesBeforeTheRule) {
  const auto resolved = resolve(kScatter, kProblem, DeviceKind::kGpu);
  EXPECT_EQ(resolved.options.splits, 2);
  EXPECT_EQ(source(resolved, "splits"), "table");
  EXPECT_THAT(choice(resolved, "splits").reason, HasSubstr("nvidia-h200"));
  EXPECT_EQ(source(resolved, "reduction"), "table");
  EXPECT_EQ(source(resolved, "tile"), "table");
}

TEST_F(Resolve, TheDeviceAndNotTheMachineModelDecidesAboutTheTable) {
  Machine machine = load_machine("h200x4");
  machine.gemm.tiles.clear();
  Simulation(machine, 4, {.phantom = true}).run([&](World& world) {
    EXPECT_EQ(world.device(), DeviceKind::kSimulated);
    EXPECT_EQ(source(ops::resolve(world, kScatter, kProblem), "splits"), "rule");
  });
}

TEST_F(Resolve, APlanOfFewRowsIsSequential) {
  const auto few = resolve(kScatter, {.m = 128, .n = 8192, .k = 8192}, DeviceKind::kGpu);
  EXPECT_EQ(few.options.form, Form::kSequential);
  EXPECT_EQ(few.options.copy_by, CopyBy::kSm);
  EXPECT_EQ(few.sequential_rows, 0) << "all runs have one form";
  EXPECT_EQ(source(few, "transport"), "table");
  const auto many = resolve(kScatter, kProblem, DeviceKind::kGpu);
  EXPECT_EQ(many.options.form, Form::kOverlapped);
  EXPECT_GT(many.sequential_rows, 0);
  EXPECT_EQ(many.sequential.form, Form::kSequential);
  EXPECT_EQ(many.sequential.m, many.sequential_rows);
  EXPECT_EQ(many.sequential.copy_by, CopyBy::kSm);
}

TEST_F(Resolve, TheCacheComesBeforeTheTable) {
  fill_cache(kScatter, cached());
  const auto resolved = resolve(kScatter, kProblem, DeviceKind::kGpu);
  EXPECT_EQ(resolved.options.splits, 4);
  EXPECT_EQ(source(resolved, "splits"), "cache");
  EXPECT_EQ(choice(resolved, "splits").reason, folder_ / "cache.json");
  EXPECT_EQ(resolved.options.reduction, Reduction::kOwner);
  EXPECT_EQ(source(resolved, "form"), "cache");
  EXPECT_EQ(resolved.sequential_rows, 0) << "the cached form holds for all rows";
  EXPECT_EQ(source(resolved, "communication_sms"), "rule") << "the entry leaves it open";
}

TEST_F(Resolve, TheCallerComesBeforeTheCache) {
  fill_cache(kScatter, cached());
  OperatorOptions given = kProblem;
  given.splits = 3;
  const auto resolved = resolve(kScatter, given, DeviceKind::kGpu);
  EXPECT_EQ(resolved.options.splits, 3);
  EXPECT_EQ(source(resolved, "splits"), "caller");
  EXPECT_EQ(source(resolved, "reduction"), "table") << "an entry is used as a whole or not at all";
}

/// The cache has tiles and panel groups of its own.
TEST_F(Resolve, TheCallersTilesComeBeforeTheCache) {
  fill_cache(kScatter, cached());
  for (const auto set : {+[](OperatorOptions& o) { o.tile_n = 128; }, +[](OperatorOptions& o) { o.panel_group = 4; },
                         +[](OperatorOptions& o) { o.direction = Direction::kPull; }}) {
    OperatorOptions given = kProblem;
    set(given);
    const auto resolved = resolve(kScatter, given);
    EXPECT_EQ(resolved.options.tile_n, given.tile_n);
    EXPECT_EQ(resolved.options.panel_group, given.panel_group);
    EXPECT_EQ(resolved.options.direction, given.direction);
    EXPECT_NE(resolved.options.splits, 4);
  }
}

TEST_F(Resolve, AKernelsLimitHoldsForEverySource) {
  OperatorOptions given = kProblem;
  given.type = DType::kE4M3;
  for (const auto& [tile_n, out, expected] : {std::tuple{192, DType::kBF16, 128},
                                              {512, DType::kF16, 256},
                                              {256, DType::kE4M3, 128},
                                              {512, DType::kE4M3, 128}}) {
    given.tile_n = tile_n;
    given.out_type = out;
    const auto resolved = resolve(Operator::kAllGatherGemm, given, DeviceKind::kGpu);
    EXPECT_EQ(resolved.options.tile_n, expected);
    EXPECT_THAT(choice(resolved, "tile").reason, HasSubstr("no such kernel of fp8"));
  }
}

/// On 132 SMs, 33 pairs of wide tiles have one SM of two busy.
TEST_F(Resolve, TilesOfFp8AreWideUnlessHalfOfTheSmsAreIdle) {
  for (const auto& [m, expected] : {std::pair<Size, int>{8192, 256}, {512, 256}, {256, 128}, {1, 128}}) {
    OperatorOptions given = kProblem;
    given.type = DType::kE4M3;
    given.m = m;
    EXPECT_EQ(resolve(kScatter, given, DeviceKind::kGpu).options.tile_n, expected) << m;
  }
  OperatorOptions given = kProblem;
  given.type = DType::kE4M3;
  given.tile_n = 128;
  EXPECT_EQ(resolve(kScatter, given, DeviceKind::kGpu).options.tile_n, 128) << "the caller's";
  given = kProblem;
  given.type = DType::kE4M3;
  given.block_scales = true;
  given.m = 1;
  EXPECT_EQ(resolve(kScatter, given, DeviceKind::kGpu).options.tile_n, 256) << "their only width";
}

/// 8192 columns are 32 wide tiles, and a fourth of them on each of four PEs are 8.
TEST_F(Resolve, FewRowsOfALargePlanInFp8HaveNarrowTiles) {
  OperatorOptions given = kProblem;
  given.type = DType::kE4M3;
  const auto resolved = resolve(Operator::kAllGatherGemm, given, DeviceKind::kGpu);
  EXPECT_EQ(resolved.options.tile_n, 256);
  EXPECT_EQ(resolved.narrow_rows, 4 * 256);
  EXPECT_EQ(choice(resolved, "narrow_rows").value, "1024");
  EXPECT_EQ(resolve(kScatter, given, DeviceKind::kGpu).narrow_rows, 256);
  given.m = 1024;
  EXPECT_EQ(resolve(Operator::kAllGatherGemm, given, DeviceKind::kGpu).narrow_rows, 0) << "all runs";
  given = kProblem;
  EXPECT_EQ(resolve(kScatter, given, DeviceKind::kGpu).narrow_rows, 0) << "bf16";
}

TEST_F(Resolve, LeavesNothingOpen) {
  for (const Operator op : {Operator::kAllGatherGemm, kScatter, Operator::kGemmAllReduce})
    for (const DeviceKind device : {DeviceKind::kSimulated, DeviceKind::kGpu}) {
      const auto resolved = resolve(op, kProblem, device);
      const OperatorOptions& o = resolved.options;
      EXPECT_NE(o.form, Form::kSuitable);
      EXPECT_TRUE(o.copy_by && o.reduction);
      EXPECT_GT(o.splits, 0);
      EXPECT_GE(o.communication_sms, 0);
      for (const OptionChoice& choice : resolved.choices) EXPECT_NE(choice.value, "") << choice.option;
    }
}

TEST_F(Resolve, ThePlanHasItsChoices) {
  Simulation(load_machine("h200x4"), 2, {.phantom = true}).run([&](World& world) {
    const auto plan = make_operator(world, Operator::kGemmAllReduce, {.m = 4096, .n = 4096, .k = 8192});
    const auto resolved = ops::resolve(world, Operator::kGemmAllReduce, {.m = 4096, .n = 4096, .k = 8192});
    ASSERT_EQ(plan->choices().size(), resolved.choices.size());
    for (std::size_t i = 0; i < resolved.choices.size(); ++i) {
      EXPECT_EQ(plan->choices()[i].option, resolved.choices[i].option);
      EXPECT_EQ(plan->choices()[i].value, resolved.choices[i].value);
    }
    // The numbers of rows are those at which the plan changes its way.
    const Size rows = std::stol(choice(resolved, "packet_rows").value);
    EXPECT_EQ(plan->strategy(rows), "packets");
    EXPECT_NE(plan->strategy(rows + 1), "packets");
  });
}

}  // namespace
}  // namespace tandem
