// What the host of a rendezvous decides.
#include "bootstrap/meeting.h"

#include <gmock/gmock.h>

#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

using ::testing::HasSubstr;

Meeting meeting_of(int size) {
  Meeting meeting;
  for (int pe = 0; pe < size; ++pe) meeting.join(pe, size);
  return meeting;
}

Contribution part(const Team& team, const std::string& name, const std::string& text, std::uint64_t number = 0,
                  std::uint32_t timeout_ms = 60000) {
  return {team.first, team.stride, team.size, number, name, timeout_ms, Bytes(view(text).begin(), view(text).end())};
}

Team world(int size) { return {0, 1, size, 0, size}; }

/// To whom the failure goes, and its text, which must be the same for all.
std::pair<std::vector<int>, std::string> failure_in(Meeting& meeting) {
  std::vector<int> to;
  std::string text;
  for (const Meeting::Message& message : meeting.take_messages()) {
    EXPECT_EQ(message.kind, Kind::kFailed);
    to.push_back(message.to);
    const std::string this_text = Failure::decode(message.payload).text;
    EXPECT_TRUE(text.empty() || text == this_text);
    text = this_text;
  }
  return {to, text};
}

TEST(MeetingTest, GathersByPeWhoeverComesFirst) {
  Meeting meeting = meeting_of(3);
  meeting.contribute(2, part(world(3), "x", "two"));
  meeting.contribute(0, part(world(3), "x", "zero"));
  EXPECT_TRUE(meeting.take_messages().empty());
  meeting.contribute(1, part(world(3), "x", ""));
  const auto messages = meeting.take_messages();
  ASSERT_EQ(messages.size(), 3U);
  for (const Meeting::Message& message : messages) {
    const Gathered gathered = Gathered::decode(message.payload);
    ASSERT_EQ(gathered.blobs.size(), 3U);
    EXPECT_EQ(gathered.blobs[0].size(), 4U);
    EXPECT_EQ(gathered.blobs[1].size(), 0U);
    EXPECT_EQ(gathered.blobs[2].size(), 3U);
  }
}

TEST(MeetingTest, TeamsDoNotWaitForEachOther) {
  Meeting meeting = meeting_of(4);
  const Team odd{1, 2, 2, 0, 1};
  meeting.contribute(0, part(world(4), "all", ""));
  meeting.contribute(1, part(odd, "some", ""));
  meeting.contribute(3, part(odd, "some", ""));
  EXPECT_EQ(meeting.take_messages().size(), 2U);
}

TEST(MeetingTest, PesThatDoDifferentThingsAreNamed) {
  Meeting meeting = meeting_of(2);
  meeting.contribute(1, part(world(2), "heap", ""));
  meeting.contribute(0, part(world(2), "barrier", ""));
  const auto [to, text] = failure_in(meeting);
  EXPECT_EQ(to, (std::vector<int>{0, 1}));
  EXPECT_EQ(text, "the PEs do not do the same: PE 1 is at 'heap', PE 0 at 'barrier'");
}

TEST(MeetingTest, WhoIsMissingIsNamed) {
  Meeting meeting;
  meeting.join(0, 4);
  meeting.join(3, 4);
  EXPECT_THROW(meeting.join(3, 4), InvalidArgument);
  meeting.contribute(0, part(world(4), "beginning", "", 0, 0));
  EXPECT_TRUE(meeting.next_deadline());
  meeting.look_at_clock();
  const auto [to, text] = failure_in(meeting);
  EXPECT_EQ(to, (std::vector<int>{0, 3}));
  EXPECT_THAT(text, HasSubstr("PE 1, 2 of 4 never came, PE 3 did not get there; PE 3 came twice"));
  EXPECT_FALSE(meeting.next_deadline());
}

TEST(MeetingTest, WhoIsGoneIsNamedToTheOthers) {
  Meeting meeting = meeting_of(3);
  meeting.contribute(0, part(world(3), "x", ""));
  meeting.lose(1, "killed");
  const auto [to, text] = failure_in(meeting);
  EXPECT_EQ(to, (std::vector<int>{0, 2}));
  EXPECT_EQ(text, "PE 1 is gone: killed");
  EXPECT_FALSE(meeting.over());
  meeting.leave(0);
  meeting.lose(2, "");
  EXPECT_TRUE(meeting.over());
  EXPECT_TRUE(meeting.take_messages().empty());
}

TEST(MeetingTest, LeavingIsNoFailureUnlessSomebodyWaits) {
  Meeting meeting = meeting_of(3);
  meeting.leave(1);
  meeting.lose(1, "closed");
  EXPECT_TRUE(meeting.take_messages().empty());
  meeting.contribute(2, part(world(3), "x", ""));
  EXPECT_EQ(failure_in(meeting).second, "PE 1 has left the world; PE 2 is at 'x'");
}

TEST(MeetingTest, APesOwnFailureReachesAll) {
  Meeting meeting = meeting_of(2);
  meeting.fail(1, {FailureKind::kTimeout, "gave up"});
  EXPECT_EQ(failure_in(meeting).second, "PE 1: gave up");
}

TEST(MeetingTest, WhatNoMemberSendsIsRefused) {
  Meeting meeting = meeting_of(2);
  EXPECT_THROW(meeting.contribute(0, part({0, 1, 3, 0, 1}, "x", "")), BadMessage);
  EXPECT_THROW(meeting.contribute(0, part({1, 1, 1, 0, 1}, "x", "")), BadMessage);
  meeting.contribute(0, part(world(2), "x", ""));
  EXPECT_THROW(meeting.contribute(0, part(world(2), "x", "")), BadMessage);
  EXPECT_THROW(meeting.join(0, 0), InvalidArgument);
  EXPECT_THROW(meeting.join(2, 2), InvalidArgument);
}

}  // namespace
}  // namespace tandem::bootstrap
