// `tandem check`: what it finds, what it writes, and its exit codes.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/tool.h"

namespace tandem::cli::testing {
namespace {

TEST(CheckCommand, CleanOperatorsGiveCodeZeroAndJson) {
  const Outcome outcome = tandem("check all_reduce --algo ring --pes 2,3 --schedules 3 --seed 7 --json -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = outcome.json();
  EXPECT_EQ(json["op"], "all_reduce");
  EXPECT_EQ(json["schedules"], 3);
  EXPECT_EQ(json["strategy"], "random");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_TRUE(json["findings"].is_array());
  EXPECT_TRUE(json["findings"].empty());
  EXPECT_GT(json["configurations"].get<int>(), 4);
}

TEST(CheckCommand, EveryStrategyRuns) {
  for (const char* const strategy : {"random", "pct", "delay", "dfs"}) {
    const Outcome outcome =
        tandem(std::string("check broadcast --algo direct --pes 2 --schedules 5 --strategy ") + strategy);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("clean"), std::string::npos) << outcome.out;
  }
}

TEST(CheckCommand, MutantsOfAnAlgorithmAreKilledOrExplained) {
  const Outcome outcome = tandem("check all_reduce --algo ring --mutants --schedules 20 --json -");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto json = outcome.json();
  EXPECT_GT(json["total"].get<int>(), 10);
  EXPECT_EQ(json["survived"], 0);
  EXPECT_EQ(json["total"], json["killed"].get<int>() + json["equivalent"].get<int>());
  EXPECT_GT(json["equivalent"].get<int>(), 0);
  for (const auto& mutant : json["mutants"]) {
    if (mutant["fate"] != "equivalent") continue;
    EXPECT_FALSE(mutant["reason"].get<std::string>().empty());
  }
  EXPECT_FALSE(json["operators"].empty());
}

TEST(CheckCommand, WhatCannotBeIsOneLineAndCodeTwo) {
  for (const char* const wrong : {"check nothing_like_it", "check all_reduce --algo none", "check --schedules 0",
                                  "check --strategy best", "check --pes 33", "check --case all_reduce.ring.99"}) {
    const Outcome outcome = tandem(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << wrong << '\n' << outcome.err;
  }
}

}  // namespace
}  // namespace tandem::cli::testing
