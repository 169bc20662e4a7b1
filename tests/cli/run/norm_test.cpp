// all_reduce_norm on the command line.
#include <gmock/gmock.h>

#include "cli/tool.h"
#include "tandem/layer/all_reduce_norm.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;

TEST(Norm, RunsAndIsRightOnBothBackends) {
  for (const std::string place : {"", " --backend host"})
    for (const std::string quantise : {"none", "static", "row", "128"}) {
      const auto json =
          run_json("all_reduce_norm --pes 3 --rows 7 --hidden 300 --norm layer --quantise " + quantise + place);
      EXPECT_EQ(json["op"], "all_reduce_norm");
      EXPECT_EQ(json["shape"], "7x300");
      EXPECT_EQ(json["dtype"], "bf16");
      EXPECT_EQ(json["correct"], true);
    }
}

TEST(Norm, FollowsOperators) {
  for (const std::string words :
       {"gemm_all_reduce --shape 33x256x64 --pes 3 --norm rms", "gemm_reduce_scatter --shape 33x256x64 --norm layer",
        "gemm_all_reduce --shape 20x256x64 --quantise row --backend host --pes 2",
        "all_gather_gemm --shape 33x512x64 --activation swiglu",
        "all_gather_gemm --shape 300x256x192 --norm rms --bias --pes 3",
        "all_gather_gemm --shape 37x128x40 --norm layer --activation swiglu --algo overlapped --pes 2",
        "all_gather_gemm --shape 7x24x8 --norm none --dtype f16 --pes 4",
        "all_gather_gemm --shape 33x64x64 --norm rms --backend host --pes 2",
        "all_gather_gemm --shape 9x256x64 --activation geglu "
        "--dtype fp8_e4m3 --out-dtype fp8_e4m3 --scales rows+columns --pes 2",
        "all_gather_gemm --shape 9x768x200 --activation swiglu --dtype fp8_e4m3 --scales blocks --pes 3",
        "gemm_reduce_scatter --shape 9x200x500 --norm rms --dtype fp8_e4m3 --scales blocks --pes 2"}) {
    const auto json = run_json(words);
    EXPECT_EQ(json["correct"], true) << words;
    EXPECT_NE(json["extras"], "") << words;
  }
}

/// A in fp8 is the result of the norm, which makes its scales. B has its own.
TEST(Norm, QuantisesWhatIsGathered) {
  for (const std::string scales :
       {"", " --scales tensors", " --scales rows", " --scales columns", " --scales rows+columns", " --scales blocks"})
    for (const std::string words :
         {"--shape 33x96x64 --norm rms --pes 3", "--shape 40x64x384 --norm layer --bias --backend host --pes 2",
          "--shape 300x256x200 --norm none --activation swiglu --out-dtype f16 --pes 2"}) {
      const auto json = run_json("all_gather_gemm --dtype fp8_e4m3 " + words + scales);
      EXPECT_EQ(json["correct"], true) << words << scales;
      EXPECT_THAT(json["extras"].get<std::string>(), HasSubstr("A quantised"));
    }
  EXPECT_EQ(tandem("bench all_gather_gemm --dtype fp8_e4m3 --shape 64x64x64 --norm rms --pes 2").code, 0);
}

TEST(Norm, ListNamesItsAlgorithms) {
  const auto outcome = tandem("list");
  for (const AllReduceNormAlgorithm& algorithm : all_reduce_norm_algorithms()) {
    EXPECT_THAT(outcome.out, HasSubstr("  * " + algorithm.name + " "));
    EXPECT_THAT(outcome.out, HasSubstr(algorithm.summary));
  }
}

TEST(Norm, BenchSweepsRows) {
  const auto outcome = tandem("bench all_reduce_norm --pes 2 --hidden 256 -b 1 -e 16 -f 4 --sharded-residual --json -");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = outcome.json();
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[2]["shape"], "16x256");
  EXPECT_EQ(json[2]["algorithm"], "two_shot");
}

TEST(Norm, RefusesOptionsByName) {
  const auto error = [](const std::string& words) {
    const auto outcome = tandem(words);
    EXPECT_NE(outcome.code, 0) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("run all_reduce_norm --quantise 64"),
              HasSubstr("--quantise: no '64'; there are none, static, row, 128"));
  EXPECT_THAT(error("run all_reduce_norm --norm batch"), HasSubstr("--norm: no 'batch'; there are none, rms, layer"));
  EXPECT_THAT(error("run all_gather_gemm --shape 8x8x8 --quantise row"),
              HasSubstr("--quantise: does not apply to all_gather_gemm, but to all_reduce_norm, gemm_reduce_scatter"));
  EXPECT_THAT(error("run all_gather_gemm --shape 8x16x16 --norm rms --dtype fp8_e4m3 --out-dtype fp8_e4m3"),
              HasSubstr("out_type: fp8_e4m3 given, allowed for all_gather_gemm with a norm are bf16 and f16"));
  EXPECT_THAT(error("run all_reduce --norm rms"), HasSubstr("--norm: does not apply to all_reduce,"));
  EXPECT_THAT(error("run all_reduce_norm --hidden 0"), HasSubstr("hidden: 0 given"));
  EXPECT_THAT(error("run all_reduce_norm --bytes 1K"), HasSubstr("--bytes: does not apply to all_reduce_norm"));
  EXPECT_THAT(error("run all_reduce_norm --shape 1x1x1"), HasSubstr("--shape: does not apply to all_reduce_norm"));
  EXPECT_THAT(error("run all_reduce --rows 3"), HasSubstr("--rows: does not apply to all_reduce,"));
  EXPECT_THAT(error("run all_gather_gemm --hidden 3"), HasSubstr("--hidden: does not apply to all_gather_gemm,"));
  EXPECT_THAT(error("run all_reduce_norm --heads 3"), HasSubstr("--heads: does not apply to all_reduce_norm, but to"));
  EXPECT_THAT(error("run all_reduce_norm --pes-per-node 2"), HasSubstr("needs loads and stores between all PEs"));
}

}  // namespace
}  // namespace tandem::cli
