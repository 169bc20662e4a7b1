#include "trace/timeline/path_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trace/synthetic_timeline.h"

namespace tandem::trace {
namespace {

/// Two PEs with an SM each, PE 0's way out and PE 1's way in; times in picoseconds.
class PathPartsTest : public ::testing::Test {
 protected:
  Timeline timeline_;
  std::uint32_t sm_[2] = {timeline_.add_lane(0, LaneKind::kSm, "sm 0"), timeline_.add_lane(1, LaneKind::kSm, "sm 0")};
  std::uint32_t out_ = timeline_.add_lane(0, LaneKind::kNicOut, "nic 0 of node 0 out");
  std::uint32_t in_ = timeline_.add_lane(1, LaneKind::kLinkIn, "link in pe 1");
  std::uint32_t nic_in_ = timeline_.add_lane(1, LaneKind::kNicIn, "nic 0 of node 1 in");

  void span(std::uint32_t lane, SpanKind kind, Time begin, Time end) {
    timeline_.add(Span{lane, kind, 0, begin, end, 0});
    timeline_.end = std::max(timeline_.end, end);
  }
  void transfer(std::uint32_t lane, std::uint32_t by, Time asked, Time begin, Time end) {
    timeline_.add(Span{lane, SpanKind::kTransfer, 0, begin, end, 1, by, asked});
  }
  void arrow(Time from, Time to, const char* label = "wait") {
    timeline_.add(Arrow{sm_[0], sm_[1], timeline_.intern(label), from, to});
  }

  struct Seen {
    PathCause cause;
    Time begin, end;
    bool operator==(const Seen&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Seen& seen) {
      return out << static_cast<int>(seen.cause) << " [" << seen.begin << ", " << seen.end << ")";
    }
  };
  std::vector<Seen> parts() const {
    std::vector<Seen> seen;
    for (const PathPart& part : path_parts(timeline_, critical_path(timeline_)))
      seen.push_back({part.cause, part.begin, part.end});
    return seen;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const PathShare& share : path_shares(timeline_, path_parts(timeline_, critical_path(timeline_))))
      names.push_back(share.name);
    return names;
  }
};

TEST_F(PathPartsTest, NothingOfNothing) { EXPECT_TRUE(parts().empty()); }

TEST_F(PathPartsTest, ALinkThatEndsLastIsNotWhereThePathBegins) {
  span(sm_[0], SpanKind::kCompute, 0, 90);
  transfer(in_, kNoLane, 0, 80, 95);
  timeline_.end = 100;
  EXPECT_EQ(parts(), (std::vector<Seen>{{PathCause::kWork, 0, 90}, {PathCause::kIdle, 90, 100}}));
}

TEST_F(PathPartsTest, TheWayOfAMessageIsQueueThenNicThenLatency) {
  span(sm_[0], SpanKind::kPut, 0, 10);
  transfer(out_, kNoLane, 0, 0, 30);  // somebody else's
  transfer(out_, sm_[0], 10, 34, 50);
  transfer(nic_in_, sm_[0], 10, 34, 50);
  span(sm_[1], SpanKind::kWait, 5, 60);
  arrow(10, 60);
  EXPECT_EQ(parts(), (std::vector<Seen>{{PathCause::kWork, 0, 10},
                                        {PathCause::kQueued, 10, 30},
                                        {PathCause::kPaced, 30, 34},
                                        {PathCause::kMoving, 34, 50},
                                        {PathCause::kLatency, 50, 60}}));
  EXPECT_EQ(names(), (std::vector<std::string>{"queue of nic 0 of node 0 out", "nic 0 of node 0 out", "put", "latency",
                                               "queue pairs of nic 0 of node 0 out"}));
}

TEST_F(PathPartsTest, WhatWasSentLaterDoesNotExplainAnEarlierSignal) {
  span(sm_[0], SpanKind::kSignal, 10, 10);
  transfer(out_, sm_[0], 12, 12, 40);
  span(sm_[1], SpanKind::kWait, 0, 50);
  arrow(10, 50);
  EXPECT_EQ(parts().back(), (Seen{PathCause::kLatency, 10, 50}));
}

TEST_F(PathPartsTest, AStoreThatTheLinkHoldsUpIsTheLinks) {
  transfer(out_, kNoLane, 0, 0, 60);
  transfer(out_, sm_[0], 0, 60, 90);
  transfer(in_, sm_[0], 0, 60, 200);  // the sender does not wait for the other end
  span(sm_[0], SpanKind::kStore, 0, 100);
  EXPECT_EQ(parts(), (std::vector<Seen>{
                         {PathCause::kQueued, 0, 60}, {PathCause::kMoving, 60, 90}, {PathCause::kWork, 90, 100}}));
}

TEST_F(PathPartsTest, ComputingIsNotExplainedByWhatItSendsMeanwhile) {
  transfer(out_, sm_[0], 0, 0, 60);
  span(sm_[0], SpanKind::kCompute, 0, 100);
  EXPECT_EQ(parts(), (std::vector<Seen>{{PathCause::kWork, 0, 100}}));
}

TEST_F(PathPartsTest, ANextKernelIsLaunched) {
  span(sm_[0], SpanKind::kCompute, 0, 40);
  span(sm_[1], SpanKind::kCompute, 45, 60);
  arrow(40, 45, "start");
  EXPECT_EQ(parts(),
            (std::vector<Seen>{{PathCause::kWork, 0, 40}, {PathCause::kLaunch, 40, 45}, {PathCause::kWork, 45, 60}}));
}

TEST_F(PathPartsTest, AWorkOfRolesIsReachedThroughWhoStartedAndEndedThem) {
  const auto role = timeline_.add_lane(0, LaneKind::kSm, "sm 0 / role 0");
  const auto start = timeline_.intern("start");
  span(sm_[0], SpanKind::kLoad, 0, 10);
  timeline_.add(Arrow{sm_[0], role, start, 10, 10});
  span(role, SpanKind::kStore, 10, 50);
  timeline_.add(Arrow{role, sm_[0], start, 50, 50});
  span(sm_[1], SpanKind::kCompute, 55, 60);
  arrow(50, 55, "start");  // from the block, which did nothing after its role
  EXPECT_EQ(parts(), (std::vector<Seen>{{PathCause::kWork, 0, 10},
                                        {PathCause::kWork, 10, 50},
                                        {PathCause::kLaunch, 50, 55},
                                        {PathCause::kWork, 55, 60}}));
}

TEST_F(PathPartsTest, SharesOfSeveralLinksAreOneThatNamesTheSlowest) {
  const auto other = timeline_.add_lane(1, LaneKind::kNicOut, "nic 1 of node 0 out");
  span(sm_[0], SpanKind::kStore, 0, 30);
  transfer(out_, sm_[0], 0, 0, 30);
  span(sm_[0], SpanKind::kStore, 30, 100);
  transfer(other, sm_[0], 30, 30, 100);
  EXPECT_EQ(names(), (std::vector<std::string>{"nic 1 of node 0 out and 1 more"}));
}

TEST(PathParts, CoverTheWholeTimeOnce) {
  for (const bool overlapped : {true, false}) {
    testing::Shape shape;
    shape.sms = 8;
    shape.overlapped = overlapped;
    const Timeline timeline = testing::synthetic_gemm(shape);
    const auto parts = path_parts(timeline, critical_path(timeline));
    Time now = timeline.begin;
    for (const PathPart& part : parts) {
      EXPECT_EQ(part.begin, now);
      EXPECT_GT(part.end, part.begin);
      now = part.end;
    }
    EXPECT_EQ(now, timeline.end);
    Time sum = 0;
    for (const PathShare& share : path_shares(timeline, parts)) sum += share.time;
    EXPECT_EQ(sum, timeline.duration());
  }
}

}  // namespace
}  // namespace tandem::trace
