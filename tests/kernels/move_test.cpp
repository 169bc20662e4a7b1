// Every collective that moves data without reducing it, over a pairwise covering array; TANDEM_FULL=1 runs the whole product.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <vector>

#include "support/collective_check.h"
#include "support/collective_grid.h"
#include "support/pairwise.h"

namespace tandem::test {
namespace {

enum Factor : std::size_t { kAlgorithm, kLayout, kAmount, kType, kInPlace, kBlocks, kSeed };
constexpr int kBlockChoices[] = {0, 1, 3};
constexpr int kSeeds = 20;
constexpr int kShards = 4;  // of the covering array, so that they can run side by side
/// Elements: nothing; one; unaligned; some blocks' worth. Negative: so many bytes, and one element more: past a round of packets,
/// past a chunk of a pipeline.
constexpr Size kAmounts[] = {0, 1, 3, 1000, -(4 << 10), -(16 << 10)};
constexpr int kAmountChoices = static_cast<int>(std::size(kAmounts)) + 1;  // the last: 1 MiB in the larger buffer

bool has_root(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kGather || collective == Collective::kScatter;
}

std::vector<AlgorithmInfo> moving_algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (!reduces(info.collective)) list.push_back(info);
  return list;
}

Size count_of(int amount, Collective collective, DType type, int pes) {
  const Size shares = input_elements(collective, 1, pes, 0, 0) == 1 && output_elements(collective, 1, pes, 0, 0) == 1 ? 1 : pes;
  if (amount == kAmountChoices - 1) return (Size{1} << 20) / size_of(type) / shares;
  const Size given = kAmounts[amount];
  return given >= 0 ? given : -given / size_of(type) + 1;
}

bool can_be_in_place(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kBroadcast || collective == Collective::kGather ||
         collective == Collective::kScatter;
}

CollectiveCase case_of(const std::vector<AlgorithmInfo>& algorithms, const std::vector<int>& row, std::size_t number) {
  const AlgorithmInfo& info = algorithms[static_cast<std::size_t>(row[kAlgorithm])];
  const Layout& layout = layouts()[static_cast<std::size_t>(row[kLayout])];
  CollectiveCase c;
  c.collective = info.collective;
  c.algorithm = info.name;
  c.machine = layout.machine;
  c.nodes = layout.nodes;
  c.pes = layout.pes;
  c.type = kDTypes[row[kType]];
  c.count = count_of(row[kAmount], c.collective, c.type, c.pes);
  c.in_place = row[kInPlace] == 1;
  c.random = true;  // integers take all values; floats are compared bit by bit, as nothing is computed
  c.blocks = kBlockChoices[row[kBlocks]];
  c.seed = static_cast<std::uint64_t>(1 + row[kSeed]);
  c.calls = 3;
  c.root = has_root(c.collective) ? static_cast<int>(number % static_cast<std::size_t>(c.pes)) : 0;
  return c;
}

void expect_right(const CollectiveCase& c) {
  try {
    const CollectiveResult result = check_collective(c);
    EXPECT_EQ(result.wrong, 0) << describe(c) << ": " << result.first_wrong;
    EXPECT_EQ(result.algorithm, c.algorithm) << describe(c);
  } catch (const std::exception& error) {
    ADD_FAILURE() << describe(c) << ": " << error.what();
  }
}

std::vector<int> levels(const std::vector<AlgorithmInfo>& algorithms) {
  const auto size = [](const auto& list) { return static_cast<int>(std::size(list)); };
  return {size(algorithms), size(layouts()), kAmountChoices, size(kDTypes), 2, size(kBlockChoices), kSeeds};
}

bool allowed(const AlgorithmInfo& info, std::size_t factor, int value) {
  if (factor == kLayout) return can_run(info, layouts()[static_cast<std::size_t>(value)]);
  if (factor == kInPlace) return value == 0 || can_be_in_place(info.collective);
  return true;
}

class MovePairs : public testing::TestWithParam<int> {};

TEST_P(MovePairs, AreRight) {
  const std::vector<AlgorithmInfo> algorithms = moving_algorithms();
  const Pairwise pairwise(levels(algorithms), [&](std::size_t i, int a, std::size_t j, int b) {
    return i != kAlgorithm || allowed(algorithms[static_cast<std::size_t>(a)], j, b);
  });
  ASSERT_GE(pairwise.rows().size(), 300U);
  for (auto i = static_cast<std::size_t>(GetParam()); i < pairwise.rows().size(); i += kShards)
    expect_right(case_of(algorithms, pairwise.rows()[i], i));
}

INSTANTIATE_TEST_SUITE_P(Shards, MovePairs, testing::Range(0, kShards));

TEST(Move, WholeProduct) {
  if (std::getenv("TANDEM_FULL") == nullptr) GTEST_SKIP() << "set TANDEM_FULL=1 to run all combinations";
  const std::vector<AlgorithmInfo> algorithms = moving_algorithms();
  const std::vector<int> most = levels(algorithms);
  std::vector<int> row(most.size(), 0);
  std::size_t number = 0;
  for (;;) {
    const AlgorithmInfo& info = algorithms[static_cast<std::size_t>(row[kAlgorithm])];
    if (allowed(info, kLayout, row[kLayout]) && allowed(info, kInPlace, row[kInPlace]))
      expect_right(case_of(algorithms, row, number++));
    std::size_t factor = 0;
    while (factor < row.size() && ++row[factor] == most[factor]) row[factor++] = 0;
    if (factor == row.size()) break;
  }
}

TEST(Move, OnAStridedTeam) {
  for (const AlgorithmInfo& info : moving_algorithms()) {
    CollectiveCase c;
    c.collective = info.collective;
    c.algorithm = info.name;
    c.pes = 8;
    c.team_first = 1;
    c.team_stride = 2;
    c.team_size = 3;
    c.root = has_root(c.collective) ? 2 : 0;
    expect_right(c);
    if (info.one_node_only) continue;
    c.machine = "h100x8-rail";
    c.nodes = 2;
    c.team_size = 4;
    expect_right(c);
  }
}

TEST(Move, OneNodeAlgorithmsAreRefusedByNameBetweenNodes) {
  for (const AlgorithmInfo& info : moving_algorithms()) {
    if (!info.one_node_only) continue;
    CollectiveCase c;
    c.collective = info.collective;
    c.algorithm = info.name;
    c.nodes = 2;
    try {
      check_collective(c);
      ADD_FAILURE() << describe(c) << " was not refused";
    } catch (const Unsupported& error) {
      EXPECT_NE(std::string(error.what()).find("'" + info.name + "'"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tandem::test
