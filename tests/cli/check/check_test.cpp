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

TEST(CheckCommand, ListNamesWhatAlgoAndCaseTake) {
  const Outcome outcome = tandem("check all_gather_gemm --list");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("all_gather_gemm --algo overlapped_ce_push_ring\n"
                             "  --case all_gather_gemm.overlapped_ce_push_ring.2\n"),
            std::string::npos)
      << outcome.out;
  const auto all = tandem("check --list --json -").json();
  EXPECT_GT(all.size(), 1000U);
  // Only the named configurations are checked.
  const auto rows = tandem("check gemm_reduce_scatter --algo overlapped_chain_ce --pes 2,3 --list --json -").json();
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    EXPECT_EQ(row["op"], "gemm_reduce_scatter");
    EXPECT_EQ(row["algorithm"], "overlapped_chain_ce");
    EXPECT_NE(std::find(all.begin(), all.end(), row), all.end()) << row;
    const Outcome one = tandem("check gemm_reduce_scatter --schedules 1 --case " + row["case"].get<std::string>());
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_NE(one.out.find("1 configuration, 1 schedule: clean"), std::string::npos) << one.out;
  }
}

TEST(CheckCommand, DispatchAndCombineAreCheckedAsExperts) {
  const Outcome experts = tandem("check experts --pes 2 --list");
  ASSERT_EQ(experts.code, 0) << experts.err;
  for (const char* const call : {"dispatch", "combine"})
    EXPECT_EQ(tandem(std::string("check ") + call + " --pes 2 --list").out, experts.out) << call;
  EXPECT_NE(tandem("check combination").err.find("allowed is one of all, all_gather"), std::string::npos);
}

TEST(CheckCommand, ListOfMutantsNamesWhatBreakTakes) {
  const std::string command = "check send_recv --algo ring --pes 2 ";
  const auto rows = tandem(command + "--mutants --list --json -").json();
  ASSERT_GT(rows.size(), 5U);
  for (const auto& row : rows) {
    const std::string mutant = row["mutant"];
    EXPECT_EQ(tandem(command + "--schedules 1 --json - --break '" + mutant + "'").err, "") << mutant;
  }
  EXPECT_NE(tandem(command + "--mutants --list").out.find("send_recv --algo ring --break 'wait dropped at "),
            std::string::npos);
}

/// A routing that serves several calls meets nobody. So PEs exchange the numbers of the calls that they receive, and
/// rows take turns in slots.
TEST(CheckCommand, FaultsOfAReusedRoutingAreFound) {
  const auto finding_of = [](const std::string& algorithm, const std::string& fault) {
    const std::string command = "check experts --pes 2 --algo " + algorithm + " ";
    for (const auto& row : tandem(command + "--mutants --list --json -").json()) {
      const std::string mutant = row["mutant"];
      if (mutant.rfind(fault + " at src/collectives/experts/row_slots.h", 0) != 0) continue;
      const Outcome outcome = tandem(command + "--schedules 10 --json - --break '" + mutant + "'");
      EXPECT_EQ(outcome.code, 1) << mutant << outcome.err;
      const auto findings = outcome.json()["findings"];
      return findings.empty() ? "none" : findings[0]["kind"].get<std::string>();
    }
    return "no mutant: " + fault;
  };
  for (const char* const algorithm : {"packets", "chunks"}) {
    SCOPED_TRACE(algorithm);
    EXPECT_EQ(finding_of(algorithm, "wait dropped"), "write_before_read_is_over");            // for the numbers
    EXPECT_EQ(finding_of(algorithm, "signal_after_reads dropped"), "hang");                   // their exchange
    EXPECT_EQ(finding_of(algorithm, "next_epoch same parity"), "write_before_read_is_over");  // one slot for two
  }
}

TEST(CheckCommand, EveryStrategyRuns) {
  for (const char* const strategy : {"random", "pct", "delay", "dfs"}) {
    const Outcome outcome =
        tandem(std::string("check broadcast --algo direct --pes 2 --schedules 5 --strategy ") + strategy);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("clean"), std::string::npos) << outcome.out;
  }
}

TEST(CheckCommand, SaysWhetherDfsIsExhausted) {
  const std::string command = "check broadcast --algo direct --case broadcast.direct.2 --strategy dfs --schedules ";
  EXPECT_NE(tandem(command + "5").out.find("; dfs is exhausted in 0 of them"), std::string::npos);
  EXPECT_EQ(tandem(command + "5 --json -").json()["exhausted"], false);
  EXPECT_EQ(tandem(command + "100000 --json -").json()["exhausted"], true);
  EXPECT_FALSE(tandem("check broadcast --algo direct --case broadcast.direct.2 --json -").json().contains("exhausted"));
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
    EXPECT_EQ(mutant["schedules"], 5);
  }
  EXPECT_FALSE(json["operators"].empty());
}

/// A bound on operations ends the search for a mutant that nothing kills: each run of this case is a large one.
TEST(CheckCommand, AMutantOfALargeCaseIsTriedUnderFewerSchedules) {
  const auto json =
      tandem("check gemm_all_reduce --case gemm_all_reduce.overlapped_one_shot.3 --mutants --json -").json();
  EXPECT_EQ(json["survived"], 0);
  EXPECT_GT(json["equivalent"].get<int>(), 0);
  for (const auto& mutant : json["mutants"]) {
    EXPECT_GE(mutant["schedules"].get<int>(), 1) << mutant;
    EXPECT_LE(mutant["schedules"].get<int>(), 2) << mutant;
  }
}

TEST(CheckCommand, ABrokenCallSiteGivesCodeOneFindingsAndAReportThatReplays) {
  std::string broken, command;
  for (const auto& row : tandem("check all_gather --algo push --mutants --list --json -").json()) {
    const std::string mutant = row["mutant"];
    if (mutant.rfind("wait dropped", 0) != 0) continue;
    command = "check all_gather --algo push --pes 3 --schedules 3 --break '" + mutant + "'";
    const auto findings = tandem(command + " --json -").json()["findings"];
    if (findings.empty() || findings[0]["kind"] != "read_before_write_is_visible") continue;
    broken = mutant;
    break;
  }
  ASSERT_FALSE(broken.empty());
  const TemporaryFolder folder;
  const std::string page = folder / "check.html";
  const Outcome outcome = tandem(command + " --json - --report " + page);
  ASSERT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  const auto json = outcome.json();
  ASSERT_FALSE(json["findings"].empty());
  for (const auto& finding : json["findings"]) {
    for (const char* const field : {"kind", "sites", "pes", "missing", "replay"})
      EXPECT_TRUE(finding.contains(field)) << finding.dump();
    EXPECT_FALSE(finding["pes"].empty()) << finding.dump();
    EXPECT_TRUE(finding["kind"] == "wrong_result" || finding.contains("buffer") || finding.contains("signal"))
        << finding.dump();
    for (const auto& at : finding["sites"]) {
      EXPECT_THAT(at["file"].get<std::string>(),
                  ::testing::AnyOf(::testing::StartsWith("src/"), ::testing::StartsWith("tools/")))
          << finding.dump();
      EXPECT_GT(at["line"].get<int>(), 0);
      EXPECT_EQ(at.contains("launch"), at["by"].get<std::string>().find(" block ") != std::string::npos) << at;
      EXPECT_NE(at["by"].get<std::string>().find("PE "), std::string::npos) << finding.dump();
    }
  }
  const std::size_t number = json["findings"].size();
  EXPECT_THAT(tandem(command).out, ::testing::HasSubstr(" schedules: " + std::to_string(number) +
                                                        (number == 1 ? " finding\n" : " findings\n")));
  const std::string written = read_file(page);
  const auto& site = json["findings"][0]["sites"][0];
  const std::string place = site["file"].get<std::string>() + ":" + std::to_string(site["line"].get<int>());
  for (const std::string& text :
       {std::string("\"finding 1: "), place, json["findings"][0]["replay"].get<std::string>()})
    EXPECT_NE(written.find(text), std::string::npos) << text;

  // One line brings the same finding back.
  const auto& first = json["findings"][0];
  const auto replay = first["replay"].get<std::string>();
  ASSERT_TRUE(replay.starts_with("tandem check all_gather --case ")) << replay;
  const Outcome again = tandem(replay.substr(std::string("tandem ").size()) + " --json -");
  EXPECT_EQ(again.code, 1) << again.out << again.err;
  EXPECT_EQ(again.json()["findings"][0], first);
}

TEST(CheckCommand, WhatCannotBeIsOneLineAndCodeTwo) {
  for (const char* const wrong :
       {"check nothing_like_it", "check all_reduce --algo none", "check --schedules 0", "check --strategy best",
        "check --pes 33", "check --case all_reduce.ring.99", "check barrier --break nothing",
        "check --mutants --break nothing", "check layers --mutants", "check layers --pes 3 --mutants"}) {
    const Outcome outcome = tandem(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << wrong << '\n' << outcome.err;
  }
}

}  // namespace
}  // namespace tandem::cli::testing
