// dispatch and combine on the command line.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::read_file;
using testing::run_json;
using testing::tandem;
using testing::TemporaryFolder;

TEST(Experts, RunAndAreRightOnBothBackends) {
  const auto run = [](const char* op_and_options, const char* place) {
    return run_json(fmt::format("{} --pes 3 --tokens 4 --hidden 300 --experts 6 --top-k 3{}", op_and_options, place));
  };
  for (const char* const place : {"", " --backend host"}) {
    const auto dispatch = run("dispatch --routing ragged --wire quantised --layout by_expert", place);
    EXPECT_EQ(dispatch["op"], "dispatch");
    EXPECT_EQ(dispatch["shape"], "4x300");
    EXPECT_EQ(dispatch["correct"], true);
    EXPECT_EQ(run("combine --routing zipf:1.5 --align 8", place)["correct"], true);
  }
}

TEST(Experts, RunByProcesses) {
  for (const int pes : {2, 3})
    for (const char* const call : {"dispatch --wire quantised --algo packets", "combine --algo chunks"}) {
      const auto outcome = tandem(
          fmt::format("launch -n {} '" TANDEM_CLI_PATH
                      "' run {} --backend host --tokens 4 --hidden 300 --experts 6 --top-k 3 --routing ragged --json -",
                      pes, call));
      EXPECT_EQ(outcome.code, 0) << call << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("\"correct\": true")) << call;
    }
}

TEST(Experts, BenchSweepsTokensOfAModel) {
  const auto outcome = tandem("bench dispatch combine --pes 2 --model qwen3-30b-a3b:moe -e 2 --json -");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = outcome.json();
  ASSERT_EQ(json.size(), 4U);
  EXPECT_EQ(json[1]["shape"], "2x2048");
  EXPECT_EQ(json[3]["op"], "combine");
}

/// One fabric for 32 PEs. All rows to one PE take longer than the same rows to all.
TEST(Experts, PhantomRunsKnowTheirRouting) {
  const auto time_of = [](const char* routing) {
    return run_json(
               fmt::format("dispatch --machine h200x8 --pes 32 --phantom --tokens 1 --routing {}", routing))["time_us"]
        .get<double>();
  };
  EXPECT_GT(time_of("one"), 1.1 * time_of("random"));
}

TEST(Experts, ExplainTheTransport) {
  const auto outcome = tandem("run combine --pes 2 --tokens 2 --hidden 64 --experts 4 --top-k 2 --explain");
  EXPECT_THAT(outcome.out, HasSubstr("packets")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("packets up to 96 MiB"));
  EXPECT_EQ(run_json("combine --pes 2 --tokens 2 --hidden 64 --experts 4 --top-k 2 --algo chunks")["algorithm"],
            "chunks");
}

/// A shape of tokens and columns, or of heads, is no GEMM, so a report has no rate of it.
TEST(Experts, AreDrawn) {
  const TemporaryFolder folder;
  for (const char* const call : {"dispatch --tokens 1", "dispatch_gemm --tokens 1", "all_reduce_norm"}) {
    const auto outcome =
        tandem(fmt::format("run {} --pes 2 --phantom --svg {} --report {}", call, folder / "a.svg", folder / "a.html"));
    EXPECT_EQ(outcome.code, 0) << call << outcome.err;
    EXPECT_THAT(read_file(folder / "a.svg"), HasSubstr("2 PEs of h200x4, predicted"));
    EXPECT_THAT(read_file(folder / "a.html"),
                ::testing::AllOf(HasSubstr("predicted time"), ::testing::Not(HasSubstr("TFLOP/s a PE"))));
  }
}

TEST(Experts, RefuseOptionsByName) {
  const auto error = [](const std::string& words) {
    const auto outcome = tandem(words);
    EXPECT_NE(outcome.code, 0) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("run dispatch --routing two"),
              HasSubstr("--routing: no 'two'; there are balanced, random, zipf:S with S from 0 to 10, one, none"));
  EXPECT_THAT(error("run dispatch --wire fp4"), HasSubstr("--wire: no 'fp4'; there are type, quantised, given"));
  EXPECT_THAT(error("run dispatch --layout flat"), HasSubstr("--layout: no 'flat'; there are sorted, by_expert"));
  EXPECT_THAT(error("run dispatch --experts 10"), HasSubstr("experts: 10 given to experts, allowed are multiples of"));
  EXPECT_THAT(error("run dispatch --tokens 0"), HasSubstr("max_tokens: 0 given"));
  EXPECT_THAT(error("run combine --model llama3-8b:qkv"), HasSubstr("allowed is one of deepseek-v3:moe"));
  EXPECT_THAT(error("run combine --bytes 1K"), HasSubstr("--bytes: does not apply to combine"));
  EXPECT_THAT(error("run combine --rows 3"), HasSubstr("--rows: does not apply to combine"));
  EXPECT_THAT(error("run all_reduce --top-k 3"), HasSubstr("--top-k: does not apply to all_reduce"));
  EXPECT_THAT(error("run all_reduce_norm --routing one"), HasSubstr("--routing: does not apply to all_reduce_norm"));
  EXPECT_THAT(error("run dispatch --algo ring"),
              HasSubstr("--algo: dispatch has no 'ring'; it has fused, packets, chunks"));
}

}  // namespace
}  // namespace tandem::cli
