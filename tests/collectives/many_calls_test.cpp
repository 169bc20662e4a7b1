// Plans that have made more calls than half a counter holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "support/collective_check.h"
#include "support/collective_grid.h"

namespace tandem::test::many_calls_test {
namespace {

std::string title(const ::testing::TestParamInfo<AlgorithmInfo>& param) {
  return std::string(name(param.param.collective)) + "_" + param.param.name;
}

class EarlierCallsOfPlans : public ::testing::TestWithParam<AlgorithmInfo> {};

/// Enough elements for several rounds of packets, pieces and chunks in some of the calls.
TEST_P(EarlierCallsOfPlans, ThatManyLeaveTheNextOnesRight) {
  const AlgorithmInfo& info = GetParam();
  for (const Layout& layout : {Layout{"h200x8", 1, 2}, {"h200x8", 1, 3}, {"h200x8", 1, 4}, {"h100x8-rail", 2, 4}}) {
    if (!can_run(info, layout)) continue;
    for (const auto& [bits, blocks] : {std::pair{32, 0}, {32, 1}, {40, 0}, {50, 1}}) {
      CollectiveCase c;
      c.collective = info.collective;
      c.algorithm = info.name;
      c.machine = layout.machine;
      c.nodes = layout.nodes;
      c.pes = layout.pes;
      c.type = DType::kU32;
      c.count = 20'000;
      c.root = layout.pes - 1;
      c.calls = 6;
      c.blocks = blocks;
      // A word of grouped messages holds a number of 47 bits.
      c.earlier_calls = (std::uint64_t{1} << (info.name == "grouped" ? std::min(bits, 46) : bits)) - 3;
      const CollectiveResult result = check_collective(c);
      EXPECT_EQ(result.wrong, 0) << c << ": " << result.first_wrong;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EarlierCallsOfPlans, ::testing::ValuesIn(collective_algorithms()), title);

}  // namespace
}  // namespace tandem::test::many_calls_test
