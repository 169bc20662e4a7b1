#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::run_json;
using testing::tandem;
using testing::TemporaryFolder;

TEST(Tune, WritesATableThatRunsTakeTheirAlgorithmsFrom) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  const auto outcome = tandem("tune all_reduce --algo ring --pes 3 -b 1K -e 64K -f 64 --out " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ring/"));
  EXPECT_THAT(outcome.out, HasSubstr("wrote " + file));
  EXPECT_EQ(run_json("all_reduce --bytes 1K")["algorithm"], "one_shot_ll128");
  EXPECT_EQ(run_json("all_reduce --bytes 1K --selection " + file)["algorithm"], "ring");
  EXPECT_EQ(run_json("all_gather --bytes 1K --selection " + file)["algorithm"], "ll128");  // the table does not say
}

TEST(Tune, SaysThatTheSimulatorPredicts) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  const auto outcome =
      tandem("tune all_reduce --algo ring --pes 2 -b 1K -e 1K --out " + file + " --json " + folder / "a.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("tried, predicted)\n"));
  EXPECT_EQ(nlohmann::json::parse(testing::read_file(folder / "a.json"))[0]["predicted"], true);
  const auto table = nlohmann::json::parse(testing::read_file(file));
  EXPECT_EQ(table["description"], "Algorithms of collectives on h200x4, predicted by tandem tune");
  EXPECT_THAT(table["groups"][0]["source"].get<std::string>(), HasSubstr("predicted with the machine model h200x4"));
}

/// The simulator has it, GPUs of this version do not.
TEST(Tune, LeavesOutWhatGpusDoNotRun) {
  const TemporaryFolder folder;
  const auto tried = [&](const std::string& options) {
    std::set<std::string> algorithms;
    const std::string json = folder / "a.json";
    EXPECT_EQ(
        tandem("tune all_reduce --pes 4 -b 2M -e 2M " + options + "--out " + folder / "t.json" + " --json " + json)
            .code,
        0);
    for (const auto& row : nlohmann::json::parse(testing::read_file(json))) algorithms.insert(row["algorithm"]);
    return algorithms;
  };
  EXPECT_EQ(tried("").count("multimem"), 0U);
  EXPECT_EQ(tried("--algo multimem ").count("multimem"), 1U);
}

TEST(Tune, OperatorsGoIntoACache) {
  const TemporaryFolder folder;
  const std::string file = folder / "cache.json";
  const auto outcome = tandem("tune gemm_reduce_scatter --shape 512x512x512 --pes 2 --out " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("TANDEM_OPERATOR_CACHE=" + file));
  const auto cache = nlohmann::json::parse(testing::read_file(file));
  ASSERT_EQ(cache["entries"].size(), 1);
  EXPECT_EQ(cache["entries"][0]["op"], "gemm_reduce_scatter");
  EXPECT_EQ(cache["entries"][0]["machine"], "h200x4");
  EXPECT_LE(cache["entries"][0]["us"], cache["entries"][0]["sequential_us"]);
}

/// Value and source of an option of `tandem run --explain`.
std::string explained(const std::string& run, const std::string& option) {
  const nlohmann::json result = run_json(run + " --explain");
  for (const auto& one : result["options"])
    if (one["option"] == option) return one["value"].get<std::string>() + " by " + one["source"].get<std::string>();
  return "";
}

TEST(Tune, PlansOfALayersCallTakeTheirFormFromATable) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  const auto norm = tandem("tune all_reduce_norm --pes 2 --hidden 256 --algo two_shot -b 4 -e 16 -f 4 --out " + file);
  ASSERT_EQ(norm.code, 0) << norm.err;
  EXPECT_THAT(norm.out, HasSubstr("two_shot/"));
  const auto heads = tandem("tune merge_heads --pes 2 --heads 4 -b 1 -e 1 --out " + file);
  ASSERT_EQ(heads.code, 0) << heads.err;
  auto table = nlohmann::json::parse(testing::read_file(file));
  ASSERT_EQ(table["groups"].size(), 2);
  EXPECT_EQ(table["groups"][1]["op"], "merge_heads");
  table["groups"][1]["sizes"][0]["blocks"] = 1;
  std::ofstream(file) << table;
  const std::string few = "all_reduce_norm --pes 2 --hidden 256 --rows 4",
                    merge = "merge_heads --heads 4 --batch 1 --pes 2";
  EXPECT_EQ(explained(few, "algo"), "one_shot_ll by rule");
  EXPECT_EQ(explained(merge, "blocks"), "2 by rule");
  ASSERT_EQ(::setenv("TANDEM_SELECTION", file.c_str(), 1), 0);
  EXPECT_EQ(explained(few, "algo"), "two_shot by table");
  EXPECT_EQ(explained(few + " --algo one_shot_ll", "algo"), "one_shot_ll by caller");
  EXPECT_EQ(explained(few + " --quantise row", "algo"), "one_shot_ll by rule");  // the table does not say
  EXPECT_EQ(explained("all_reduce_norm --pes 4 --hidden 256 --rows 4", "algo"), "one_shot_ll by rule");
  EXPECT_EQ(explained(merge, "blocks"), "1 by table");
  ::unsetenv("TANDEM_SELECTION");
}

TEST(Tune, ALayersCallIsMeasuredOnCpus) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  const auto outcome =
      tandem("tune all_reduce_norm --quantise row --backend host --pes 2 --hidden 128 -b 1 -e 2 --out " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("tried, measured)"));
  const auto table = nlohmann::json::parse(testing::read_file(file));
  EXPECT_EQ(table["processor"], "cpu");
  EXPECT_EQ(table["groups"][0]["op"], "all_reduce_norm_fp8");
  EXPECT_EQ(table["groups"][0]["pes"], 2);
}

TEST(Tune, RefusesWhatALayersCallLacks) {
  const auto error = [](const std::string& words) {
    const auto outcome = tandem("tune " + words + " --out table.json");
    EXPECT_EQ(outcome.code, 2) << words;
    return outcome.err;
  };
  EXPECT_THAT(error("exchange_heads"), HasSubstr("OP: 'exchange_heads' given, whose choices no table has"));
  EXPECT_THAT(error("all_reduce_norm all_reduce"), HasSubstr("calls of a layer and others given"));
  EXPECT_THAT(error("all_reduce_norm --rows 3"), HasSubstr("--rows: does not apply to tune"));
  EXPECT_THAT(error("all_reduce_norm --algo ring"), HasSubstr("all_reduce_norm has no 'ring'"));
}

TEST(Tune, KeepsWhatAnExistingTableSaysAboutOthers) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  for (const char* const options :
       {"all_reduce --algo ring --pes 2", "all_reduce --algo tree --pes 2", "broadcast --algo chain --pes 2"})
    ASSERT_EQ(tandem(std::string("tune ") + options + " -b 1K -e 1K --out " + file).code, 0) << options;
  const auto table = nlohmann::json::parse(testing::read_file(file));
  ASSERT_EQ(table["groups"].size(), 2);
  EXPECT_EQ(table["groups"][0]["sizes"][0]["algorithm"], "tree");
  EXPECT_THAT(table["groups"][0]["source"].get<std::string>(), HasSubstr("tandem tune all_reduce --algo tree"));
  EXPECT_EQ(table["groups"][1]["op"], "broadcast");
}

TEST(Tune, ATableAndACacheDoNotDisplaceEachOther) {
  const TemporaryFolder folder;
  const std::string table = folder / "table.json", cache = folder / "cache.json", other = folder / "other.json";
  const std::string collective = "tune all_reduce --algo ring --pes 2 -b 1K -e 1K --out ";
  const std::string gemm = "tune gemm_reduce_scatter --shape 64x64x64 --pes 2 --out ";
  ASSERT_EQ(tandem(collective + table).code, 0);
  ASSERT_EQ(tandem(gemm + cache).code, 0);
  std::ofstream(other) << "{}";
  const auto expect_refused = [&](const std::string& command, const std::string& file, const std::string& why) {
    const std::string before = testing::read_file(file);
    const auto outcome = tandem(command + file);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;  // nothing was measured
    EXPECT_EQ(outcome.err, "tandem: --out: " + file + why + ": give another file\n");
    EXPECT_EQ(testing::read_file(file), before);
    EXPECT_FALSE(std::filesystem::exists(file + ".damaged"));
  };
  expect_refused(gemm, table, " is a selection table, that of operators is a cache");
  expect_refused(gemm, other, " is JSON of something else, that of operators is a cache");
  expect_refused(collective, cache, " is a cache of operators, that of collectives is a selection table");
  ASSERT_EQ(tandem(gemm + cache).code, 0);
}

/// A cache that is no JSON any more is kept aside, as plans that read it say.
TEST(Tune, ADamagedCacheIsKept) {
  const TemporaryFolder folder;
  const std::string cache = folder / "cache.json";
  std::ofstream(cache) << "{ \"entries\": [";
  ASSERT_EQ(tandem("tune gemm_reduce_scatter --shape 64x64x64 --pes 2 --out " + cache).code, 0);
  EXPECT_EQ(testing::read_file(cache + ".damaged"), "{ \"entries\": [");
}

TEST(Tune, RefusesATableOfAnotherMachineAndADamagedOne) {
  const TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  ASSERT_EQ(tandem("tune all_reduce --algo ring --pes 2 -b 1K -e 1K --out " + file).code, 0);
  const std::string before = testing::read_file(file);
  const auto other = tandem("tune all_reduce --machine mi300x8 --algo ring --pes 2 -b 1K -e 1K --out " + file);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("is a table of h200x4"));
  EXPECT_EQ(testing::read_file(file), before);
  std::ofstream(file) << "{";
  EXPECT_EQ(tandem("tune all_reduce --out " + file).code, 2);
  EXPECT_EQ(tandem("run all_reduce --selection " + file).code, 2);
}

}  // namespace
}  // namespace tandem::cli
