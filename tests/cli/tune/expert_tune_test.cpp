// `tandem tune` of the calls of experts, and plans that take what it found.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;
using testing::TemporaryFolder;

constexpr const char* kSmall = "--pes 2 --hidden 64 --experts 4 --top-k 2";

/// A cache that later calls of the tool read.
class ExpertTune : public ::testing::Test {
 protected:
  ~ExpertTune() override { ::unsetenv("TANDEM_OPERATOR_CACHE"); }

  void tune(const std::string& words) const {
    const auto outcome = tandem(fmt::format("tune {} --out {}", words, file_));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("TANDEM_OPERATOR_CACHE=" + file_));
  }
  /// Value and source of an option.
  std::string explained(const std::string& run, const std::string& option) const {
    ::setenv("TANDEM_OPERATOR_CACHE", file_.c_str(), 1);
    const nlohmann::json result = run_json(run + " --explain");
    ::unsetenv("TANDEM_OPERATOR_CACHE");
    for (const auto& one : result["options"])
      if (one["option"] == option) return one["value"].get<std::string>() + " by " + one["source"].get<std::string>();
    return "";
  }
  nlohmann::json cache() const { return nlohmann::json::parse(testing::read_file(file_)); }
  /// Makes one algorithm the fastest in all entries of a call.
  void prefer(const std::string& op, const std::string& algorithm, int blocks) const {
    nlohmann::json json = cache();
    for (auto& entry : json["experts"])
      for (auto& time : entry["times"])
        if (entry["key"]["op"] == op && time["algorithm"] == algorithm && time["blocks"] == blocks) time["us"] = 1e-6;
    std::ofstream(file_) << json;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "cache.json";
};

TEST_F(ExpertTune, TriesTransportsAndBlocksOfEachSize) {
  tune(fmt::format("dispatch combine {} -b 2 -e 4", kSmall));
  const nlohmann::json json = cache();
  ASSERT_EQ(json["experts"].size(), 4U);
  std::set<std::string> tried;
  for (const auto& time : json["experts"][0]["times"])
    tried.insert(fmt::format("{}/{}", time["algorithm"].get<std::string>(), time["blocks"].get<int>()));
  EXPECT_THAT(tried, ::testing::IsSupersetOf({"packets/0", "packets/32", "chunks/0", "chunks/512", "fused/0"}));
  EXPECT_EQ(json["experts"][1]["key"]["tokens"], 4);
  EXPECT_EQ(json["experts"][2]["key"]["op"], "combine");
}

TEST_F(ExpertTune, PlansTakeTheLeastSumOfBothCalls) {
  const std::string run = fmt::format("dispatch {} --tokens 4", kSmall);
  tune(fmt::format("dispatch combine {} -b 4 -e 4", kSmall));
  EXPECT_THAT(explained(run, "algo"), HasSubstr("by cache"));
  prefer("dispatch", "chunks", 8);
  prefer("combine", "chunks", 8);
  EXPECT_EQ(explained(run, "algo"), "chunks by cache");
  EXPECT_EQ(explained(run, "blocks"), "8 by cache");
  EXPECT_EQ(explained(run + " --blocks 3", "algo"), "packets by rule");  // A caller who chooses a part chooses all.
  EXPECT_EQ(explained(fmt::format("dispatch {} --tokens 5", kSmall), "algo"), "packets by rule");
}

TEST_F(ExpertTune, PlansTakeTheFusedKernelWhereItIsFastest) {
  tune(fmt::format("dispatch combine {} -b 4 -e 4", kSmall));
  prefer("dispatch", "fused", 0);
  prefer("combine", "fused", 0);
  EXPECT_EQ(explained(fmt::format("dispatch {} --tokens 4", kSmall), "algo"), "fused by cache");
  // More than 1,788 choices of a PE exclude it.
  EXPECT_NE(tandem(fmt::format("tune dispatch {} -b 1K -e 1K --algo fused --out {}", kSmall, file_)).code, 0);
}

TEST_F(ExpertTune, PlansOfProductsTakeTheirForms) {
  const std::string shape = std::string("--pes 2 --experts 4 --top-k 2 --hidden 1024 --intermediate 512");
  const std::string run = fmt::format("gemm_combine {} --tokens 4", shape);
  const std::string of_products = fmt::format("{} -b 4 -e 4", shape);
  tune("dispatch_gemm gemm_combine " + of_products);
  EXPECT_THAT(explained(run, "algo"), HasSubstr("by cache"));
  prefer("gemm_combine", "overlapped", 16);
  EXPECT_EQ(explained(run, "algo"), "overlapped by cache");
  EXPECT_EQ(explained(run, "communication-sms"), "16 by cache");
  EXPECT_EQ(explained(run + " --column-chunks 1", "algo"), "sequential by rule");
}

TEST_F(ExpertTune, RunsOnCpus) {
  tune(fmt::format("dispatch {} -b 3 -e 3 --backend host --algo chunks", kSmall));
  tune(fmt::format("gemm_combine {} --intermediate 32 -b 3 -e 3 --backend host", kSmall));
  for (const auto& entry : cache()["experts"]) EXPECT_GT(entry["times"][0]["us"], 0) << entry;
  EXPECT_EQ(cache()["experts"].size(), 2U);
}

/// Entries of operators and of experts share a file.
TEST_F(ExpertTune, KeepsOtherEntries) {
  tune("gemm_reduce_scatter --shape 512x512x512 --pes 2");
  tune(fmt::format("combine {} -b 1 -e 1 --algo packets", kSmall));
  tune("gemm_reduce_scatter --shape 256x512x512 --pes 2");
  EXPECT_EQ(cache()["entries"].size(), 2U);
  EXPECT_EQ(cache()["experts"].size(), 1U);
}

TEST_F(ExpertTune, ADamagedFileCountsAsAMiss) {
  std::ofstream(file_) << R"({"format": 1, "entries": [], "experts": [{"key": 3}]})";
  EXPECT_EQ(explained(fmt::format("dispatch {} --tokens 4", kSmall), "algo"), "packets by rule");
}

TEST_F(ExpertTune, RefusesOptionsByName) {
  const auto error = [&](const std::string& words) {
    const auto outcome = tandem(fmt::format("tune {} --out {}", words, file_));
    EXPECT_NE(outcome.code, 0) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("dispatch --tokens 3"), HasSubstr("--tokens: does not apply to tune, whose sizes are -b to -e"));
  EXPECT_THAT(error("gemm_combine --column-chunks 3"), HasSubstr("--column-chunks: does not apply to tune"));
  EXPECT_THAT(error("dispatch --algo ring"), HasSubstr("--algo: 'ring' given, tune tries packets, chunks and fused"));
  EXPECT_THAT(error("dispatch_gemm --algo packets"), HasSubstr("tune tries sequential and overlapped"));
  EXPECT_THAT(error("dispatch all_gather"), HasSubstr("OP: calls of experts and others given"));
  EXPECT_THAT(error("dispatch --experts 10 --pes 4"), HasSubstr("experts: 10 given to experts"));
}

}  // namespace
}  // namespace tandem::cli
