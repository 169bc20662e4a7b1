// merge_heads on the command line.
#include <gmock/gmock.h>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;

TEST(Heads, RunsAndIsRightOnBothBackends) {
  for (const std::string place : {"", " --backend host"})
    for (const std::string size : {"40", "256 --all-heads"}) {
      const auto json = run_json("merge_heads --pes 3 --batch 2 --heads 7 --head-size " + size + place);
      EXPECT_EQ(json["op"], "merge_heads");
      EXPECT_EQ(json["dtype"], "bf16");
      EXPECT_EQ(json["algorithm"], size == "40" ? "ll" : "ll128");
      EXPECT_EQ(json["correct"], true);
    }
}

TEST(Heads, BenchSweepsBatches) {
  const auto outcome = tandem("bench merge_heads --pes 2 --heads 4 -b 1 -e 16 -f 4 --json -");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = outcome.json();
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[2]["shape"], "16x4x128");
}

TEST(Heads, ExchangesThemBothWays) {
  for (const std::string place : {"", " --backend host"})
    for (const std::string to : {"heads --kv-heads 3", "rows"}) {
      const auto json = run_json("exchange_heads --pes 3 --rows 5 --heads 6 --head-size 24 --to " + to + place);
      EXPECT_EQ(json["shape"], "5x6x24");
      EXPECT_EQ(json["correct"], true);
    }
}

TEST(Heads, RefusesOptionsByName) {
  const auto error = [](const std::string& words) {
    const auto outcome = tandem(words);
    EXPECT_NE(outcome.code, 0) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("run merge_heads --heads 0"), HasSubstr("heads: 0 given to merge_heads"));
  EXPECT_THAT(error("run merge_heads --algo ll"), HasSubstr("--algo: 'll' given to merge_heads"));
  EXPECT_THAT(error("run merge_heads --bytes 1K"), HasSubstr("--bytes: does not apply to merge_heads"));
  EXPECT_THAT(error("run merge_heads --rows 1"),
              HasSubstr("--rows: does not apply to merge_heads, but to all_reduce_norm, exchange_heads"));
  EXPECT_THAT(error("run all_reduce --batch 3"),
              HasSubstr("--batch: does not apply to all_reduce, but to merge_heads"));
  EXPECT_THAT(error("run exchange_heads --pes 4 --heads 6"), HasSubstr("6 given to exchange_heads on 4 PEs"));
  EXPECT_THAT(error("run exchange_heads --to all"), HasSubstr("--to: 'all' given, allowed are heads and rows"));
  EXPECT_THAT(error("run merge_heads --to rows"),
              HasSubstr("--to: does not apply to merge_heads, but to exchange_heads"));
  EXPECT_THAT(error("run exchange_heads --to rows --kv-heads 4"),
              HasSubstr("--kv-heads: does not apply with --to rows"));
}

}  // namespace
}  // namespace tandem::cli
