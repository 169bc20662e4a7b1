#include "tandem/advanced/operator_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class OperatorCache : public ::testing::Test {
 protected:
  OperatorCache() {
    char name[] = "/tmp/tandem_cache_XXXXXX";
    folder_ = ::mkdtemp(name);
    file_ = folder_ + "/cache.json";
  }
  ~OperatorCache() override {
    ::unsetenv(kOperatorCacheVariable);
    std::filesystem::remove_all(folder_);
  }

  static TunedOperator entry(Size m) {
    TunedOperator tuned;
    tuned.key = {Operator::kGemmReduceScatter, m, 64, 128, DType::kF16, BLayout::kNxK, 4, 4, "h200x4", "1.2.3"};
    tuned.options = {.m = m, .n = 64, .k = 128, .type = DType::kF16, .form = Form::kOverlapped};
    tuned.options.copy_by = CopyBy::kSm;
    tuned.options.splits = 3;
    tuned.options.order = "peers_first";
    tuned.options.communication_sms = 5;
    tuned.us = 12.5;
    tuned.sequential_us = 20;
    return tuned;
  }

  std::string folder_, file_;
};

TEST_F(OperatorCache, GivesBackWhatWasStoredUnderItsKeyAlone) {
  std::string warning;
  EXPECT_FALSE(find_tuned(file_, entry(1).key, warning).has_value());
  store_tuned(file_, entry(1));
  store_tuned(file_, entry(2));
  TunedOperator better = entry(1);
  better.us = 11;
  better.options.splits = 4;
  store_tuned(file_, better);
  const auto found = find_tuned(file_, entry(1).key, warning);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->us, 11);
  EXPECT_EQ(describe(found->key.op, found->options), describe(better.key.op, better.options));
  EXPECT_TRUE(find_tuned(file_, entry(2).key, warning).has_value());
  OperatorKey other = entry(1).key;
  other.version = "1.2.4";
  EXPECT_FALSE(find_tuned(file_, other, warning).has_value());
  other = entry(1).key;
  other.pes = 8;
  EXPECT_FALSE(find_tuned(file_, other, warning).has_value());
  other = entry(1).key;
  other.b_layout = BLayout::kKxN;
  EXPECT_FALSE(find_tuned(file_, other, warning).has_value());
  TunedOperator transposed = entry(1);
  transposed.key.b_layout = BLayout::kKxN;
  store_tuned(file_, transposed);
  EXPECT_TRUE(find_tuned(file_, other, warning).has_value());
  EXPECT_EQ(warning, "");
}

TEST_F(OperatorCache, TellsFastAccumulationAndNormsApart) {
  std::string warning;
  store_tuned(file_, entry(1));
  for (const auto& [fast, norm] : {std::pair(true, ""), std::pair(false, "rms"), std::pair(false, "rms, residual")}) {
    TunedOperator other = entry(1);
    other.key.fast_accumulation = fast;
    other.key.norm = norm;
    EXPECT_FALSE(find_tuned(file_, other.key, warning).has_value()) << norm;
    other.options.splits = 7;
    store_tuned(file_, other);
    EXPECT_EQ(find_tuned(file_, other.key, warning).value().options.splits, 7) << norm;
  }
  EXPECT_EQ(find_tuned(file_, entry(1).key, warning).value().options.splits, 3);
  EXPECT_EQ(warning, "");
}

/// Files of earlier builds of this version have neither.
TEST_F(OperatorCache, AnEntryWithoutFastAccumulationAndNormIsOneOfAPlainOperator) {
  store_tuned(file_, entry(1));
  std::stringstream kept;
  kept << std::ifstream(file_).rdbuf();
  auto json = nlohmann::ordered_json::parse(kept.str());
  EXPECT_EQ(json["entries"][0].erase("fast_accumulation"), 1U);
  EXPECT_EQ(json["entries"][0].erase("norm"), 1U);
  std::ofstream(file_) << json;
  std::string warning;
  EXPECT_EQ(find_tuned(file_, entry(1).key, warning).value().options.splits, 3);
  EXPECT_EQ(warning, "");
  TunedOperator fast = entry(1);
  fast.key.fast_accumulation = true;
  EXPECT_FALSE(find_tuned(file_, fast.key, warning).has_value());
}

TEST_F(OperatorCache, ADamagedFileIsAMissAndKeptAsideByTheNextWriter) {
  for (const char* const text :
       {"{", "", "[]", R"({"format": 2, "entries": []})", R"({"format": 1, "entries": [{"op": 3}]})"}) {
    std::ofstream(file_) << text;
    std::string warning;
    EXPECT_FALSE(find_tuned(file_, entry(1).key, warning).has_value());
    EXPECT_THAT(warning, HasSubstr("is damaged and not used")) << text;
    store_tuned(file_, entry(1));
    warning.clear();
    EXPECT_TRUE(find_tuned(file_, entry(1).key, warning).has_value());
    EXPECT_EQ(warning, "");
    std::ifstream damaged(file_ + ".damaged");
    std::string kept((std::istreambuf_iterator<char>(damaged)), {});
    EXPECT_EQ(kept, text);
  }
}

TEST_F(OperatorCache, APathThatCannotBeLookedAtIsAMiss) {
  std::filesystem::create_symlink(file_, file_);
  std::string warning;
  EXPECT_FALSE(find_tuned(file_, entry(1).key, warning).has_value());
  EXPECT_THAT(warning, HasSubstr("cannot be read and is not used: Too many levels of symbolic links"));
}

TEST_F(OperatorCache, ConcurrentWritersLoseNothing) {
  constexpr int kProcesses = 8, kEntries = 10;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int j = 0; j < kEntries; ++j) store_tuned(file_, entry(i * kEntries + j));
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::string warning;
  for (int i = 0; i < kProcesses * kEntries; ++i)
    EXPECT_TRUE(find_tuned(file_, entry(i).key, warning).has_value()) << i;
  EXPECT_EQ(warning, "");
}

TEST_F(OperatorCache, WhereItCannotBeWrittenIsSaid) {
  EXPECT_THROW(store_tuned("/nowhere/cache.json", entry(1)), InvalidArgument);
}

SimOptions phantom() {
  SimOptions options;
  options.phantom = true;
  options.heap_bytes = Size{1} << 36;
  return options;
}

TuneSetup simulated(int pes) {
  TuneSetup setup;
  setup.in_world = [pes](const std::function<void(World&)>& program) {
    Simulation(load_machine("h200x4"), pes, phantom()).run(program);
  };
  setup.calls = 1;
  return setup;
}

constexpr Size kRows = 1024;
OperatorOptions problem() { return {.m = kRows, .n = 2048, .k = 2048}; }

TEST(OperatorTuning, FindsTheBestOfAllAndNothingSlowerThanSequential) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce}) {
    const OperatorTuning tuning = tune_operator(op, problem(), simulated(4));
    const TunedOperator best = tuning.entry();
    EXPECT_GT(best.us, 0);
    EXPECT_LE(best.us, tuning.sequential_us);
    EXPECT_GT(tuning.trials.size(), 30U);
    for (const OperatorTrial& trial : tuning.trials) EXPECT_TRUE(trial.us == 0 || trial.us >= best.us);
    EXPECT_EQ(tuning.key.pes, 4);
    EXPECT_EQ(tuning.key.machine, "h200x4");
  }
}

TEST(OperatorTuning, TriesTheBestPredictionsAndTheBaseline) {
  TuneSetup setup = simulated(4);
  setup.model = load_machine("h200x4");
  setup.most = 3;
  std::vector<double> tried;
  setup.watch = [&](const OperatorTrial& trial) { tried.push_back(trial.predicted_us); };
  const OperatorTuning tuning = tune_operator(Operator::kAllGatherGemm, problem(), setup);
  EXPECT_GE(tried.size(), 3U);
  EXPECT_LE(tried.size(), 7U);  // and the sequential ones
  EXPECT_TRUE(std::is_sorted(tried.begin(), tried.end()));
  EXPECT_GT(tuning.sequential_us, 0);
  EXPECT_GT(tuning.trials.size(), tried.size());
}

TEST(OperatorTuning, WhatCannotBeIsNamed) {
  const auto refusal = [](const std::function<void(TuneSetup&)>& change) -> std::string {
    TuneSetup wrong = simulated(2);
    change(wrong);
    try {
      tune_operator(Operator::kAllGatherGemm, {.m = 64, .n = 64, .k = 64}, wrong);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(refusal([](TuneSetup& s) { s.in_world = nullptr; }), HasSubstr("in_world: none given"));
  EXPECT_EQ(refusal([](TuneSetup& s) { s.calls = 0; }), "calls: 0 given, allowed is 1 or more");
  EXPECT_EQ(refusal([](TuneSetup& s) { s.most = -5; }), "most: -5 given, allowed is 0 or more");
  const OperatorTuning none = tune_operator(Operator::kAllGatherGemm, {.m = 64, .n = 0, .k = 64}, simulated(2));
  try {
    none.entry();
    FAIL();
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), HasSubstr("n: 0 given, allowed is 1 or more"));
  }
}

TEST(OperatorTuning, TheSlowestPeCountsOnAllPes) {
  TuneSetup setup = simulated(3);
  setup.time = [](World& world, Stream&, const std::function<void()>&) { return 10.0 + world.pe(); };
  std::vector<double> seen(3);
  setup.in_world([&](World& world) {
    OperatorOptions options = problem();
    seen[static_cast<std::size_t>(world.pe())] = try_operator(world, Operator::kAllGatherGemm, options, setup).us;
  });
  EXPECT_EQ(seen, (std::vector<double>{12, 12, 12}));
}

TEST(OperatorTuning, TriesOperatorsWithNorms) {
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
    for (const DType type : {DType::kBF16, DType::kE4M3}) {
      OperatorOptions options = problem();
      options.type = type;
      options.norm = {.norm = Norm::kLayer, .residual = true, .norm_bias = true, .sum = true};
      if (op != Operator::kAllGatherGemm) options.norm.quantisation = Quantisation::kGroup;
      TuneSetup setup = simulated(2);
      setup.scales = type == DType::kE4M3;
      setup.in_world([&](World& world) {
        const OperatorTrial trial = try_operator(world, op, options, setup);
        EXPECT_EQ(trial.failure, "") << name(op);
        EXPECT_GT(trial.us, 0);
      });
    }
}

/// The others wait in an allocation of the plan, in which all PEs meet: the world of the trial ends by name.
TEST(OperatorTuning, AConfigurationThatFailsOnOnePeEndsItsWorld) {
  const TuneSetup setup = simulated(3);
  const auto try_it = [&] {
    setup.in_world([&](World& world) {
      OperatorOptions options = problem();
      if (world.pe() == 1) options.n = 0;
      try_operator(world, Operator::kGemmReduceScatter, options, setup);
    });
  };
  EXPECT_THROW(try_it(), Deadlock);
}

TEST(OperatorTuning, AConfigurationThatEndsItsWorldIsDropped) {
  TuneSetup setup = simulated(2);
  setup.time = [calls = 0](World& world, Stream& stream, const std::function<void()>& call) mutable {
    if (world.pe() == 0) ++calls;
    if (calls == 2 && world.pe() == 0) throw Timeout("PE 0 gave up");
    call();
    stream.synchronize();
    return 5.0;
  };
  const OperatorTuning tuning = tune_operator(Operator::kGemmReduceScatter, problem(), setup);
  EXPECT_GT(tuning.entry().us, 0);
  int dropped = 0;
  for (const OperatorTrial& trial : tuning.trials) dropped += !trial.failure.empty();
  EXPECT_GE(dropped, 1);
}

/// The options that a plan on each PE ends with.
std::vector<OperatorOptions> planned(const std::function<void(World&)>& before, OperatorOptions options) {
  std::vector<OperatorOptions> plans(4);
  Simulation(load_machine("h200x4"), 4, phantom()).run([&](World& world) {
    before(world);
    plans[static_cast<std::size_t>(world.pe())] = make_operator(world, Operator::kAllGatherGemm, options)->options();
  });
  return plans;
}

class TunedPlans : public OperatorCache {
 protected:
  void SetUp() override {
    TunedOperator tuned;
    Simulation(load_machine("h200x4"), 4, phantom()).run([&](World& world) {
      if (world.pe() == 0) tuned.key = operator_key(world, Operator::kAllGatherGemm, problem());
    });
    tuned.options = problem();
    tuned.options.form = Form::kOverlapped;
    tuned.options.copy_by = CopyBy::kSm;
    tuned.options.splits = 3;
    tuned.options.order = "ring";
    tuned.options.communication_sms = 7;
    store_tuned(file_, tuned);
  }
};

TEST_F(TunedPlans, TakeWhatTheCacheHas) {
  const auto nothing = [](World&) {};
  EXPECT_NE(planned(nothing, problem())[0].communication_sms, 7);
  ::setenv(kOperatorCacheVariable, file_.c_str(), 1);
  for (const OperatorOptions& options : planned(nothing, problem())) {
    EXPECT_EQ(options.communication_sms, 7);
    EXPECT_EQ(options.order, "ring");
    EXPECT_EQ(options.splits, 3);
  }
  OperatorOptions chosen = problem();
  chosen.splits = 2;
  EXPECT_NE(planned(nothing, chosen)[0].communication_sms, 7) << "the caller left nothing open";
  chosen = problem();
  chosen.m /= 2;
  EXPECT_NE(planned(nothing, chosen)[0].communication_sms, 7) << "another shape";
}

/// The cache has an entry of the plain product alone.
TEST_F(TunedPlans, AreOfTheSameStepsAndSums) {
  ::setenv(kOperatorCacheVariable, file_.c_str(), 1);
  OperatorOptions normed = problem();
  normed.norm.norm = Norm::kRms;
  EXPECT_NE(planned([](World&) {}, normed)[0].communication_sms, 7);

  std::set<std::string> keys;
  const auto add = [&](const OperatorOptions& options) {
    Simulation(load_machine("h200x4"), 4, phantom()).run([&](World& world) {
      const OperatorKey key = operator_key(world, Operator::kAllGatherGemm, options);
      if (world.pe() == 0) keys.insert(key.norm + (key.fast_accumulation ? ", fast" : ""));
    });
  };
  add(problem());
  add(normed);
  normed.norm.epsilon = 1;  // costs no time
  add(normed);
  EXPECT_EQ(keys.size(), 2U);
  normed.norm.residual = true;
  add(normed);
  normed.norm.sum = true;
  add(normed);
  normed.norm.norm_bias = true;
  add(normed);
  normed.norm.norm = Norm::kLayer;
  add(normed);
  normed.type = DType::kE4M3;
  normed.fast_accumulation = true;
  add(normed);
  EXPECT_EQ(keys.size(), 7U);
}

/// The file changes while the PEs read it: no PE takes what not all have.
TEST_F(TunedPlans, DoWithoutWhereThePesDisagree) {
  ::setenv(kOperatorCacheVariable, file_.c_str(), 1);
  const auto damage = [&](World& world) {
    if (world.pe() == 3) std::ofstream(file_) << "{";
  };
  for (const OperatorOptions& options : planned(damage, problem())) EXPECT_NE(options.communication_sms, 7);
}

TEST_F(TunedPlans, DoWithoutWhereOnePeCannotLook) {
  ::setenv(kOperatorCacheVariable, file_.c_str(), 1);
  const auto hide = [&](World& world) {
    if (world.pe() != 3) return;
    std::filesystem::remove(file_);
    std::filesystem::create_symlink(file_, file_);
  };
  for (const OperatorOptions& options : planned(hide, problem())) EXPECT_NE(options.communication_sms, 7);
}

}  // namespace
}  // namespace tandem
