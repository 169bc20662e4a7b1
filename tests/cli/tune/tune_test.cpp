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
