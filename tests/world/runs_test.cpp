// Every collective and every operator on CPUs, for real, by threads and by processes.
#include <gmock/gmock.h>

#include "bootstrap/processes.h"
#include "world/cases.h"

namespace tandem::test {
namespace {

using bootstrap::testing::Ended;
using bootstrap::testing::Process;

class OnHost : public ::testing::TestWithParam<int> {
 protected:
  static int pes() { return GetParam(); }

  static void check_processes(const std::string& what) {
    const UniqueId id = UniqueId::create();
    std::vector<Process> all;
    for (int pe = 0; pe < pes(); ++pe)
      all.emplace_back(TANDEM_WORLD_PEER,
                       std::vector<std::string>{what, id.text(), std::to_string(pe), std::to_string(pes())});
    for (std::size_t pe = 0; pe < all.size(); ++pe) {
      const Ended ended = all[pe].wait();
      EXPECT_EQ(ended.code, 0) << "PE " << pe;
      EXPECT_EQ(ended.output, "") << "PE " << pe;
    }
  }
};

TEST_P(OnHost, CollectivesOfThreads) {
  const auto cases = collective_cases(pes(), pes() == 2);
  EXPECT_THAT(answers_of_threads(pes(), [&](World& world) { return run_collectives(world, cases); }),
              ::testing::IsEmpty());
}

TEST_P(OnHost, CollectivesOfProcesses) { check_processes("collectives"); }

TEST_P(OnHost, OperatorsOfThreads) {
  const auto cases = operator_cases(pes());
  EXPECT_THAT(answers_of_threads(pes(), [&](World& world) { return run_operators(world, cases); }),
              ::testing::IsEmpty());
}

TEST_P(OnHost, OperatorsOfProcesses) { check_processes("operators"); }

class ExpertsOnHost : public OnHost {};

TEST_P(ExpertsOnHost, KeepTheirBitsWithLateThreads) {
  EXPECT_THAT(answers_of_threads(pes(), run_expert_stress), ::testing::IsEmpty());
}

TEST_P(ExpertsOnHost, KeepTheirBitsWithLateProcesses) { check_processes("expert_stress"); }

INSTANTIATE_TEST_SUITE_P(Pes, ExpertsOnHost, ::testing::Values(2, 3));

INSTANTIATE_TEST_SUITE_P(Pes, OnHost, ::testing::Values(1, 2, 3, 5, 8));

}  // namespace
}  // namespace tandem::test
