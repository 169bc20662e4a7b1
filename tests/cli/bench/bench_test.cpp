#include <gmock/gmock.h>

#include <sstream>
#include <vector>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::tandem;

/// The words of each line that is no comment.
std::vector<std::vector<std::string>> rows(const std::string& text) {
  std::vector<std::vector<std::string>> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    all.emplace_back();
    for (std::string word; words >> word;) all.back().push_back(word);
  }
  return all;
}

TEST(Bench, SweepsSizesInTheColumnsOfNcclTests) {
  const auto outcome = tandem("bench reduce_scatter --algo ring -b 1000 -e 9K -f 3 --dtype bf16 --op max");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* const column : {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"})
    EXPECT_THAT(outcome.out, HasSubstr(column));
  const auto table = rows(outcome.out);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[0][0], "1000");
  EXPECT_EQ(table[1][0], "3000");
  EXPECT_EQ(table[2][0], "9000");
  ASSERT_EQ(table[1].size(), 10U);
  EXPECT_THAT(std::vector<std::string>(table[1].begin() + 1, table[1].begin() + 5),
              ElementsAre("375", "bf16", "max", "-1"));
  EXPECT_EQ(table[1][8], "0");
}

TEST(Bench, BandwidthsFollowNcclTests) {
  const auto outcome = tandem("bench all_reduce -b 1M -e 1M --json -");
  const auto row = outcome.json().at(0);
  const double bandwidth = 1048576 / (row["time_us"].get<double>() * 1e3);
  EXPECT_NEAR(row["algbw_gbps"], bandwidth, 1e-9 * bandwidth);
  EXPECT_NEAR(row["busbw_gbps"], bandwidth * 1.5, 1e-9 * bandwidth);  // 2 (n-1) / n
  EXPECT_EQ(row["count"], 262144);
  EXPECT_EQ(row["correct"], true);
}

TEST(Bench, SaysThatItsTimesArePredictions) {
  const std::string both = "bench all_reduce -b 1K -e 1K";
  EXPECT_THAT(tandem(both).out, HasSubstr("\n# times are predicted with the machine model h200x4\n"));
  EXPECT_EQ(tandem(both + " --json -").json().at(0)["predicted"], true);
}

TEST(Bench, PhantomHasNothingWrongToCount) {
  const auto outcome = tandem("bench broadcast --root 2 -b 4K -e 4K --phantom");
  const auto table = rows(outcome.out);
  EXPECT_THAT(outcome.out, HasSubstr("\n# wrong elements: not checked (--phantom)\n"));
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0][3], "none");
  EXPECT_EQ(table[0][4], "2");
  EXPECT_EQ(table[0][8], "N/A");
}

TEST(Bench, SweepsTheRowsOfAnOperator) {
  const auto table = rows(tandem("bench all_gather_gemm --model llama3-8b:o -b 1K -e 4K -f 4 --phantom").out);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_THAT(std::vector<std::string>(table[0].begin(), table[0].begin() + 4),
              ElementsAre("1024", "4096", "4096", "bf16"));
  EXPECT_EQ(table[1][0], "4096");
}

TEST(Bench, ASizeOfZeroAndTheLargestOneEnd) {
  EXPECT_EQ(rows(tandem("bench all_reduce -b 0 -e 2").out).size(), 3U);  // 0, 1, 2
}

TEST(Bench, TakesSeveralOperationsOneAfterTheOther) {
  const auto outcome = tandem("bench all_reduce broadcast -b 1K -e 2K --phantom --json -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> ops;
  for (const auto& row : outcome.json()) ops.push_back(row["op"]);
  EXPECT_EQ(ops, (std::vector<std::string>{"all_reduce", "all_reduce", "broadcast", "broadcast"}));
}

/// Where there is a GPU the run itself may succeed; where there is none, one line says so.
TEST(Backend, CudaRunsOrSaysWhyNot) {
  for (const char* const command : {"run", "bench"}) {
    const auto outcome = tandem(std::string(command) + " all_reduce --backend cuda --pes 1");
    if (outcome.code == 0) continue;
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, ::testing::StartsWith("tandem: --backend: 'cuda' given, but this "));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

}  // namespace
}  // namespace tandem::cli
