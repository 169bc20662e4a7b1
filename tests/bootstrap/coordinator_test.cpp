// Decisions of the coordinator at the host of a rendezvous.
#include "bootstrap/rendezvous/coordinator.h"

#include <gmock/gmock.h>

#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

using ::testing::HasSubstr;

Coordinator coordinator_of(int size) {
  Coordinator coordinator;
  for (int pe = 0; pe < size; ++pe) coordinator.join(pe, size);
  return coordinator;
}

Contribution part(const Team& team, const std::string& name, const std::string& text, std::uint64_t number = 0,
                  std::uint32_t timeout_ms = 60000) {
  return {team.first, team.stride, team.size, number, name, timeout_ms, Bytes(view(text).begin(), view(text).end())};
}

Team world(int size) { return {0, 1, size, 0, size}; }

/// To whom the failure goes, and its text, which must be the same for all.
std::pair<std::vector<int>, std::string> failure_in(Coordinator& coordinator) {
  std::vector<int> to;
  std::string text;
  for (const Coordinator::Message& message : coordinator.take_messages()) {
    EXPECT_EQ(message.kind, Kind::kFailed);
    to.push_back(message.to);
    const std::string this_text = Failure::decode(message.payload).text;
    EXPECT_TRUE(text.empty() || text == this_text);
    text = this_text;
  }
  return {to, text};
}

TEST(CoordinatorTest, GathersByPeInAnyOrderOfArrival) {
  Coordinator coordinator = coordinator_of(3);
  coordinator.contribute(2, part(world(3), "x", "two"));
  coordinator.contribute(0, part(world(3), "x", "zero"));
  EXPECT_TRUE(coordinator.take_messages().empty());
  coordinator.contribute(1, part(world(3), "x", ""));
  const auto messages = coordinator.take_messages();
  ASSERT_EQ(messages.size(), 3U);
  for (const Coordinator::Message& message : messages) {
    const Gathered gathered = Gathered::decode(message.payload);
    ASSERT_EQ(gathered.blobs.size(), 3U);
    EXPECT_EQ(gathered.blobs[0].size(), 4U);
    EXPECT_EQ(gathered.blobs[1].size(), 0U);
    EXPECT_EQ(gathered.blobs[2].size(), 3U);
  }
}

TEST(CoordinatorTest, TeamsDoNotWaitForEachOther) {
  Coordinator coordinator = coordinator_of(4);
  const Team odd{1, 2, 2, 0, 1};
  coordinator.contribute(0, part(world(4), "all", ""));
  coordinator.contribute(1, part(odd, "some", ""));
  coordinator.contribute(3, part(odd, "some", ""));
  EXPECT_EQ(coordinator.take_messages().size(), 2U);
}

TEST(CoordinatorTest, PesThatDoDifferentThingsAreNamed) {
  Coordinator coordinator = coordinator_of(2);
  coordinator.contribute(1, part(world(2), "heap", ""));
  coordinator.contribute(0, part(world(2), "barrier", ""));
  const auto [to, text] = failure_in(coordinator);
  EXPECT_EQ(to, (std::vector<int>{0, 1}));
  EXPECT_EQ(text, "the PEs call different operations: PE 1 is at 'heap', PE 0 at 'barrier'");
}

TEST(CoordinatorTest, ReportsASlowAllGatherOnce) {
  constexpr double kNone = 0, kForever = 1e5;
  Coordinator patient(kForever), coordinator(kNone);
  for (Coordinator* const one : {&patient, &coordinator}) {
    one->join(0, 3);
    one->contribute(0, part(world(3), "beginning", "", 0, 1'000'000));
  }
  EXPECT_THAT(coordinator.take_slow(),
              ::testing::ElementsAre("PE 0 has waited for 0 s at 'beginning': PE 1, 2 of 3 never came"));
  EXPECT_THAT(coordinator.take_slow(), ::testing::IsEmpty());
  EXPECT_THAT(patient.take_slow(), ::testing::IsEmpty());
  EXPECT_LT(*patient.next_deadline(), Clock::now() + std::chrono::seconds(150'000));  // earlier than the timeout
}

TEST(CoordinatorTest, WhoIsMissingIsNamed) {
  Coordinator coordinator;
  coordinator.join(0, 4);
  coordinator.join(3, 4);
  EXPECT_THROW(coordinator.join(3, 4), InvalidArgument);
  coordinator.contribute(0, part(world(4), "beginning", "", 0, 0));
  EXPECT_TRUE(coordinator.next_deadline());
  coordinator.look_at_clock();
  const auto [to, text] = failure_in(coordinator);
  EXPECT_EQ(to, (std::vector<int>{0, 3}));
  EXPECT_THAT(text, HasSubstr("PE 1, 2 of 4 never came, PE 3 did not reach it; PE 3 came twice"));
  EXPECT_FALSE(coordinator.next_deadline());
}

TEST(CoordinatorTest, WhoIsGoneIsNamedToTheOthers) {
  Coordinator coordinator = coordinator_of(3);
  coordinator.contribute(0, part(world(3), "x", ""));
  coordinator.lose(1, "killed");
  const auto [to, text] = failure_in(coordinator);
  EXPECT_EQ(to, (std::vector<int>{0, 2}));
  EXPECT_EQ(text, "PE 1 is gone: killed");
  EXPECT_FALSE(coordinator.over());
  coordinator.leave(0);
  coordinator.lose(2, "");
  EXPECT_TRUE(coordinator.over());
  EXPECT_TRUE(coordinator.take_messages().empty());
}

TEST(CoordinatorTest, TheHostOfWhoIsGoneIsNamedIfThereAreSeveral) {
  Coordinator coordinator;
  for (int pe = 0; pe < 4; ++pe) coordinator.join(pe, 4, pe < 2 ? "a" : "b");
  coordinator.lose(3, "killed");
  EXPECT_EQ(failure_in(coordinator).second, "PE 3 (host b) is gone: killed");
}

TEST(CoordinatorTest, LeavingIsNoFailureUnlessSomebodyWaits) {
  Coordinator coordinator = coordinator_of(3);
  coordinator.leave(1);
  coordinator.lose(1, "closed");
  EXPECT_TRUE(coordinator.take_messages().empty());
  coordinator.contribute(2, part(world(3), "x", ""));
  EXPECT_EQ(failure_in(coordinator).second, "PE 1 has left the world; PE 2 is at 'x'");
}

TEST(CoordinatorTest, APesOwnFailureReachesAll) {
  Coordinator coordinator = coordinator_of(2);
  coordinator.fail(1, {FailureKind::kTimeout, "gave up"});
  EXPECT_EQ(failure_in(coordinator).second, "PE 1: gave up");
}

TEST(CoordinatorTest, WhatNoMemberSendsIsRefused) {
  Coordinator coordinator = coordinator_of(2);
  EXPECT_THROW(coordinator.contribute(0, part({0, 1, 3, 0, 1}, "x", "")), BadMessage);
  EXPECT_THROW(coordinator.contribute(0, part({1, 1, 1, 0, 1}, "x", "")), BadMessage);
  coordinator.contribute(0, part(world(2), "x", ""));
  EXPECT_THROW(coordinator.contribute(0, part(world(2), "x", "")), BadMessage);
  EXPECT_THROW(coordinator.join(0, 0), InvalidArgument);
  EXPECT_THROW(coordinator.join(2, 2), InvalidArgument);
}

}  // namespace
}  // namespace tandem::bootstrap
