#include "tune/expert_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/simulation.h"
#include "tune/cache_file.h"

namespace tandem::tune {
namespace {

class ExpertCache : public ::testing::Test {
 protected:
  ExpertCache() {
    char name[] = "/tmp/tandem_cache_XXXXXX";
    folder_ = ::mkdtemp(name);
    file_ = folder_ + "/cache.json";
    ::setenv(kOperatorCacheVariable, file_.c_str(), 1);
  }
  ~ExpertCache() override {
    ::unsetenv(kOperatorCacheVariable);
    std::filesystem::remove_all(folder_);
  }

  static ExpertGemmOptions problem(Size tokens) {
    ExpertGemmOptions options;
    options.experts = {.max_tokens = tokens, .hidden = 64, .experts = 4, .top_k = 2};
    options.intermediate = 32;
    return options;
  }
  /// Returns the times of a call that all of two PEs find.
  static std::vector<ExpertTime> found(const std::string& op, const ExpertGemmOptions& options) {
    std::vector<ExpertTime> times;
    Simulation(load_machine("h200x4"), 2).run([&](World& world) {
      const ExpertTimes all = find_expert_times(world, {op}, options);
      if (world.pe() == 0 && !all.file.empty()) times = all.times[0];
    });
    return times;
  }
  void store(const std::string& op, const ExpertGemmOptions& options, const std::vector<ExpertTime>& times) const {
    Simulation(load_machine("h200x4"), 2).run([&](World& world) {
      if (world.pe() == 0) store_expert_times(file_, expert_key(world, op, options), times);
    });
  }

  std::string folder_, file_;
};

TEST_F(ExpertCache, GivesBackWhatWasStoredUnderItsKeyAlone) {
  EXPECT_TRUE(found("dispatch", problem(3)).empty());
  store("dispatch", problem(3), {{"chunks", 8, 0, 5}, {"packets", 0, 0, 6}});
  store("dispatch", problem(4), {{"packets", 0, 0, 7}});
  const auto times = found("dispatch", problem(3));
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].algorithm, "chunks");
  EXPECT_EQ(times[0].blocks, 8);
  EXPECT_EQ(times[1].us, 6);
  EXPECT_TRUE(found("combine", problem(3)).empty());
  ExpertGemmOptions other = problem(3);
  other.experts.top_k = 1;
  EXPECT_TRUE(found("dispatch", other).empty());
  other = problem(3);
  other.intermediate = 64;  // which a dispatch does not have
  EXPECT_EQ(found("dispatch", other).size(), 2U);
  store("dispatch", problem(3), {{"packets", 0, 0, 4}});
  EXPECT_EQ(found("dispatch", problem(3)).size(), 1U);
}

TEST_F(ExpertCache, ProductsHaveTheirSizesInTheKey) {
  store("gemm_combine", problem(3), {{"overlapped", 8, 4, 5}});
  ASSERT_EQ(found("gemm_combine", problem(3)).size(), 1U);
  EXPECT_EQ(found("gemm_combine", problem(3))[0].column_chunks, 4);
  ExpertGemmOptions other = problem(3);
  other.intermediate = 64;
  EXPECT_TRUE(found("gemm_combine", other).empty());
}

/// Another program, or a later version, wrote it.
TEST_F(ExpertCache, TimesOfAnythingElseCountAsAMiss) {
  for (const char* const time :
       {R"({"algorithm": "ring", "blocks": 0, "column_chunks": 0, "us": 1})",
        R"({"algorithm": "packets", "blocks": -1, "column_chunks": 0, "us": 1})",
        R"({"algorithm": "packets", "blocks": 0, "column_chunks": 0, "us": 0})", R"({"algorithm": "packets"})", "3"}) {
    std::filesystem::remove(file_);
    store("dispatch", problem(3), {{"packets", 0, 0, 6}});
    EXPECT_EQ(found("dispatch", problem(3)).size(), 1U);
    CacheJson json = CacheJson::parse(std::ifstream(file_));
    json["experts"][0]["times"].push_back(CacheJson::parse(time));
    std::ofstream(file_) << json;
    EXPECT_TRUE(found("dispatch", problem(3)).empty()) << time;
  }
}

TEST(ExpertTimes, TheLeastSumOfCallsThatHaveAnEntryWins) {
  const std::vector<ExpertTime> dispatch{{"packets", 0, 0, 1}, {"chunks", 8, 0, 4}, {"chunks", 32, 0, 2}};
  const std::vector<ExpertTime> combine{{"packets", 0, 0, 9}, {"chunks", 8, 0, 3}, {"packets", 8, 0, 1}};
  const auto both = fastest_together({"file", {dispatch, combine}});
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->algorithm, "chunks");
  EXPECT_EQ(both->blocks, 8);
  EXPECT_EQ(both->us, 7);
  EXPECT_EQ(fastest_together({"file", {dispatch, {}}})->us, 1);
  EXPECT_EQ(fastest_together({"file", {{}, combine}})->us, 1);
  EXPECT_FALSE(fastest_together({"", {}}).has_value());
  EXPECT_FALSE(fastest_together({"file", {{{"packets", 0, 0, 1}}, {{"chunks", 0, 0, 1}}}}).has_value());
}

}  // namespace
}  // namespace tandem::tune
