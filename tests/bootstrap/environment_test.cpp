// Variables of launchers.
#include "bootstrap/local/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

using ::testing::HasSubstr;
using Set = std::map<std::string, std::string>;

Places read(const Set& set) {
  return read_places([&](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal_of(const Set& set) {
  try {
    read(set);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "not refused";
}

const Set kTorchrun{{"RANK", "5"},
                    {"WORLD_SIZE", "8"},
                    {"LOCAL_RANK", "1"},
                    {"LOCAL_WORLD_SIZE", "4"},
                    {"MASTER_ADDR", "node0"},
                    {"MASTER_PORT", "29500"}};
const Set kSlurm{{"SLURM_PROCID", "5"},          {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"},
                 {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}};

Set with(Set set, const std::string& name, const std::string& value) {
  set[name] = value;
  return set;
}

TEST(Environment, GivesMicroseconds) {
  using std::chrono::microseconds;
  constexpr const char* name = "TANDEM_TEST_US";
  EXPECT_EQ(microseconds_of(microseconds(5), name), microseconds(5));
  for (const auto& [text, value] : std::map<std::string, int>{{"", 5}, {"0", 0}, {"20", 20}, {"1000000", 1'000'000}}) {
    ::setenv(name, text.c_str(), 1);
    EXPECT_EQ(microseconds_of(microseconds(5), name), microseconds(value));
  }
  for (const char* const text : {"-1", "1000001", "5us", "0.5", " "}) {
    ::setenv(name, text, 1);
    EXPECT_THROW(microseconds_of(microseconds(5), name), InvalidArgument) << text;
  }
  ::unsetenv(name);
}

TEST(Environment, OfTorchrunAndOfSlurm) {
  for (const Set& set : {kTorchrun, kSlurm}) {
    const Places places = read(set);
    EXPECT_EQ(places.pe, 5);
    EXPECT_EQ(places.pes, 8);
    EXPECT_EQ(places.local_pe, 1);
    EXPECT_EQ(places.local_pes, 4);
  }
}

TEST(Environment, TorchrunUnderSlurmIsTorchrun) {
  Set both = kSlurm;
  both.insert(kTorchrun.begin(), kTorchrun.end());
  both["SLURM_PROCID"] = "0";
  EXPECT_EQ(read(both).pe, 5);
}

/// The number is the job's, and steps are smaller, or have more tasks on a node.
TEST(Environment, OfAStepThatIsNotWhatTheSlurmJobAskedFor) {
  Set step = with(with(kSlurm, "SLURM_NTASKS", "2"), "SLURM_PROCID", "1");
  EXPECT_EQ(read(step).local_pe, 1);
  EXPECT_EQ(read(step).local_pes, 2);
  step = with(kSlurm, "SLURM_LOCALID", "5");
  EXPECT_EQ(read(step).local_pe, 5);
  EXPECT_EQ(read(step).local_pes, 6);
  EXPECT_THAT(refusal_of(with(kSlurm, "SLURM_LOCALID", "8")),
              HasSubstr("SLURM_LOCALID: '8' given, allowed are 0 to 7"));
  EXPECT_THAT(refusal_of(with(kSlurm, "SLURM_NTASKS_PER_NODE", "x")), HasSubstr("SLURM_NTASKS_PER_NODE: 'x' given"));
}

TEST(Environment, JobsAreToldApart) {
  EXPECT_EQ(read(kTorchrun).job, read(with(kTorchrun, "RANK", "2")).job);
  EXPECT_NE(read(kTorchrun).job, read(with(kTorchrun, "MASTER_PORT", "29501")).job);
  EXPECT_NE(read(kTorchrun).job, read(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "1")).job);
  EXPECT_NE(read(kSlurm).job, read(with(kSlurm, "SLURM_STEP_ID", "1")).job);
}

TEST(Environment, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(refusal_of({}), HasSubstr("WORLD_SIZE: not set"));
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Set set = kTorchrun;
    set.erase(name);
    EXPECT_THAT(refusal_of(set), HasSubstr(std::string(name) + ": not set"));
  }
  EXPECT_THAT(refusal_of(with(kTorchrun, "RANK", "8")), HasSubstr("RANK: '8' given, allowed are 0 to 7"));
  EXPECT_THAT(refusal_of(with(kTorchrun, "RANK", "one")), HasSubstr("RANK: 'one'"));
  EXPECT_THAT(refusal_of(with(kTorchrun, "WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE: '0'"));
  EXPECT_THAT(refusal_of(with(kTorchrun, "LOCAL_RANK", "4")), HasSubstr("LOCAL_RANK: '4' given, allowed are 0 to 3"));
  EXPECT_THAT(refusal_of(with(kSlurm, "SLURM_NTASKS", "")), HasSubstr("SLURM_NTASKS"));
}

/// "ADDRESS:PORT", or the error.
std::string meeting_point_of(const Set& set) {
  try {
    const MeetingPoint point = read_meeting_point([&](const std::string& name) -> std::optional<std::string> {
      const auto found = set.find(name);
      return found == set.end() ? std::nullopt : std::optional(found->second);
    });
    return point.address + ":" + std::to_string(point.port);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(Environment, NamesTheMeetingPointOfSeveralHosts) {
  EXPECT_EQ(meeting_point_of(kTorchrun), "node0:29501");
  EXPECT_EQ(meeting_point_of(with(kTorchrun, "TANDEM_PORT", "7000")), "node0:7000");
  EXPECT_THAT(meeting_point_of(with(kTorchrun, "TANDEM_PORT", "0")), HasSubstr("TANDEM_PORT: '0' given"));
  EXPECT_THAT(meeting_point_of(with(kTorchrun, "MASTER_PORT", "65535")), HasSubstr("MASTER_PORT: '65535' given"));
  EXPECT_THAT(meeting_point_of(kSlurm), HasSubstr("MASTER_ADDR: not set"));
  const Set step = with(with(kSlurm, "SLURM_NODELIST", "x"), "SLURM_STEP_NODELIST", "gpu[01-04,9],login");
  EXPECT_EQ(meeting_point_of(step), "gpu01:20070");
  EXPECT_EQ(meeting_point_of(with(step, "SLURM_STEP_NODELIST", "login")), "login:20070");
  EXPECT_EQ(meeting_point_of(with(step, "SLURM_STEP_NODELIST", "r[2,5]n[7-9],x")), "r2n7:20070");
  EXPECT_EQ(meeting_point_of(with(step, "SLURM_STEP_ID", "3")), "gpu01:20073");
}

TEST(Environment, TellsSeveralHosts) {
  EXPECT_TRUE(read(kTorchrun).has_hosts);
  EXPECT_FALSE(read(with(kTorchrun, "LOCAL_WORLD_SIZE", "8")).has_hosts);
  EXPECT_FALSE(read(kSlurm).has_hosts);
  EXPECT_TRUE(read(with(kSlurm, "SLURM_NNODES", "2")).has_hosts);
  EXPECT_FALSE(read(with(with(kSlurm, "SLURM_NNODES", "2"), "SLURM_STEP_NUM_NODES", "1")).has_hosts);
}

TEST(Environment, WithAUniqueIdNoPortIsNeeded) {
  const Set set{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TANDEM_UNIQUE_ID", "x"}};
  EXPECT_EQ(read(set).pes, 1);
}

}  // namespace
}  // namespace tandem::bootstrap
