// dispatch_gemm and gemm_combine on the command line.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;

constexpr const char* kSmall = "--tokens 9 --hidden 64 --experts 4 --top-k 2 --intermediate 32 --tile 8x16";

TEST(ExpertGemms, RunInBothFormsOnBothBackends) {
  for (const char* const op : {"dispatch_gemm", "gemm_combine"})
    for (const char* const form : {"sequential", "overlapped"})
      for (const char* const place : {"", " --backend host"}) {
        const auto json = run_json(fmt::format("{} --pes 2 {} --algo {}{}", op, kSmall, form, place));
        EXPECT_EQ(json["algorithm"], form);
        EXPECT_EQ(json["shape"], "9x64x32");
        EXPECT_EQ(json["correct"], true) << op << place;
      }
}

TEST(ExpertGemms, RunInFp8) {
  for (const char* const words : {"dispatch_gemm --wire quantised", "gemm_combine --wire given --algo overlapped"}) {
    const auto json = run_json(fmt::format(
        "{} --pes 2 --tokens 5 --hidden 384 --experts 4 --top-k 2 --intermediate 128 --tile 8x256 --backend host",
        words));
    EXPECT_THAT(json["extras"], HasSubstr(", fp8_e4m3 "));
    EXPECT_EQ(json["correct"], true) << words;
  }
}

TEST(ExpertGemms, RunWithSharedColumns) {
  for (const char* const words : {"dispatch_gemm --tp-size 4 --algo overlapped", "gemm_combine --tp-size 4",
                                  "gemm_combine --tp-size 2 --algo overlapped --activation swiglu"}) {
    const auto json = run_json(fmt::format("{} --pes 4 {}", words, kSmall));
    EXPECT_EQ(json["shape"], "9x64x32");
    EXPECT_THAT(json["extras"], HasSubstr(", tp "));
    EXPECT_EQ(json["correct"], true) << words;
  }
  for (const char* const op : {"dispatch", "combine"})
    EXPECT_EQ(
        run_json(fmt::format("{} --pes 3 --tp-size 3 --tokens 5 --hidden 40 --experts 2 --top-k 2", op))["correct"],
        true);
}

TEST(ExpertGemms, RunInProcesses) {
  for (const char* const op : {"dispatch_gemm", "gemm_combine"}) {
    const auto outcome = tandem(fmt::format(
        "launch -n 2 '" TANDEM_CLI_PATH "' run {} {} --backend host --algo overlapped --routing ragged", op, kSmall));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(" elements, 0 wrong"));
  }
}

TEST(ExpertGemms, BenchSweepsTokens) {
  const auto outcome = tandem(fmt::format(
      "bench dispatch_gemm gemm_combine --pes 2 --hidden 64 --experts 4 --top-k 2 --intermediate 32 --tile 8x16 "
      "--activation swiglu -e 2 --json -"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = outcome.json();
  ASSERT_EQ(json.size(), 4U);
  EXPECT_EQ(json[1]["shape"], "2x64x32");
  EXPECT_EQ(json[3]["op"], "gemm_combine");
}

TEST(ExpertGemms, ExplainTheForm) {
  const auto outcome = tandem(fmt::format("run gemm_combine --pes 2 {} --explain", kSmall));
  EXPECT_THAT(outcome.out, HasSubstr("the overlapped form was slower for every shape on two GPUs")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("column-chunks"));
}

TEST(ExpertGemms, RefuseOptionsByName) {
  const auto error = [](const std::string& words) {
    const auto outcome = tandem(words);
    EXPECT_NE(outcome.code, 0) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("run dispatch_gemm --algo ring"),
              HasSubstr("--algo: dispatch_gemm has no 'ring'; it has sequential, overlapped"));
  EXPECT_THAT(error("run gemm_combine --wire quantised --dtype f16"),
              HasSubstr("type: f16 given to experts, allowed is bf16 with fp8 products"));
  EXPECT_THAT(error("run gemm_combine --intermediate 0"), HasSubstr("intermediate: 0 given to experts"));
  EXPECT_THAT(error("run gemm_combine --pes 3 --tp-size 3"),
              HasSubstr("--tp-size: 3 given, allowed are divisors of the 2048 columns between both products"));
  EXPECT_THAT(error("run dispatch --pes 4 --tp-size 3"),
              HasSubstr("--tp-size: 3 given to experts, allowed are divisors of the 4 PEs"));
  EXPECT_THAT(error("run merge_heads --tp-size 2"), HasSubstr("--tp-size: does not apply to merge_heads"));
  EXPECT_THAT(error("run dispatch --intermediate 8"), HasSubstr("--intermediate: does not apply to dispatch"));
}

}  // namespace
}  // namespace tandem::cli
