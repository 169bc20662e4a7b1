// Collectives with codes of 8 bits on the command line.
#include <gmock/gmock.h>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;

TEST(Quantised, RunsAndIsRightOnBothBackends) {
  for (const std::string place : {"", " --backend host"})
    for (const std::string call :
         {"all_reduce --wire fp8 --in-place", "all_gather --wire int8", "reduce_scatter --wire fp8"}) {
      const auto json = run_json(call + " --pes 3 --bytes 100K --dtype bf16" + place);
      EXPECT_EQ(json["algorithm"], "quantised");
      EXPECT_EQ(json["correct"], true);
      EXPECT_THAT(json["extras"], HasSubstr("on the wire"));
    }
}

TEST(Quantised, BenchSweepsSizes) {
  const auto outcome = tandem("bench all_reduce --wire int8 --pes 2 -b 1K -e 16K -f 4 --json -");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json().size(), 3U);
}

TEST(Quantised, RefusesOptionsByName) {
  const auto error = [](const std::string& words) {
    const auto outcome = tandem(words);
    EXPECT_NE(outcome.code, 0) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("run all_reduce --wire fp4"), HasSubstr("--wire: 'fp4' given, allowed are type, fp8 and int8"));
  EXPECT_THAT(error("run broadcast --wire fp8"), HasSubstr("wire: fp8 given to broadcast, allowed with all_reduce"));
  EXPECT_THAT(error("run all_reduce --wire fp8 --dtype i32"), HasSubstr("type: i32 given to all_reduce with fp8"));
  EXPECT_THAT(error("run all_reduce --wire fp8 --data exact"), HasSubstr("--data: does not apply with --wire"));
  EXPECT_THAT(error("run all_gather_gemm --wire fp8"), HasSubstr("--wire: does not apply to all_gather_gemm"));
  EXPECT_THAT(error("run all_reduce_norm --wire fp8"), HasSubstr("--wire: does not apply to all_reduce_norm"));
}

}  // namespace
}  // namespace tandem::cli
