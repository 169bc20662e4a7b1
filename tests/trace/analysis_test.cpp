#include "trace/timeline/analysis.h"

#include <gtest/gtest.h>

#include "trace/synthetic_timeline.h"

namespace tandem::trace {
namespace {

/// Builds small timelines: lanes by number, times in picoseconds.
class AnalysisTest : public ::testing::Test {
 protected:
  std::size_t span(std::uint32_t lane, SpanKind kind, Time begin, Time end) {
    timeline_.add(Span{lane, kind, 0, begin, end, 0});
    timeline_.end = std::max(timeline_.end, end);
    return timeline_.spans.size() - 1;
  }
  std::int64_t arrow(std::uint32_t from_lane, Time from, std::uint32_t to_lane, Time to) {
    timeline_.add(Arrow{from_lane, to_lane, 0, from, to});
    return static_cast<std::int64_t>(timeline_.arrows.size() - 1);
  }
  std::uint32_t lane(int pe) { return timeline_.add_lane(pe, LaneKind::kSm, "sm"); }

  std::vector<std::size_t> path() const {
    std::vector<std::size_t> spans;
    for (const PathStep& step : critical_path(timeline_)) spans.push_back(step.span);
    return spans;
  }
  using Path = std::vector<std::size_t>;

  Timeline timeline_;
};

TEST_F(AnalysisTest, EmptyTimelineHasNoPath) {
  EXPECT_TRUE(critical_path(timeline_).empty());
  lane(0);
  EXPECT_TRUE(critical_path(timeline_).empty());
}

TEST_F(AnalysisTest, FollowsOneLaneBackwards) {
  const auto a = lane(0);
  const auto first = span(a, SpanKind::kLoad, 0, 10);
  const auto second = span(a, SpanKind::kCompute, 10, 30);
  const auto late = span(a, SpanKind::kStore, 45, 50);  // after a gap that no arrow explains
  EXPECT_EQ(path(), (Path{first, second, late}));
}

TEST_F(AnalysisTest, LeavesAWaitThroughTheArrowThatEndedIt) {
  const auto a = lane(0);
  const auto b = lane(1);
  const auto own = span(a, SpanKind::kCompute, 0, 20);
  const auto wait = span(a, SpanKind::kWait, 20, 60);
  const auto after = span(a, SpanKind::kCompute, 60, 90);
  const auto early_put = span(b, SpanKind::kPut, 0, 25);
  const auto late_put = span(b, SpanKind::kPut, 25, 50);
  arrow(b, 25, a, 35);
  const auto released = arrow(b, 50, a, 60);
  EXPECT_EQ(path(), (Path{early_put, late_put, wait, after}));
  EXPECT_EQ(critical_path(timeline_)[2].arrow, released);
  EXPECT_EQ(critical_path(timeline_)[1].arrow, -1);
  (void)own;
}

TEST_F(AnalysisTest, AWaitThatFoundItsSignalThereIsNotLeftThroughAnArrow) {
  const auto a = lane(0);
  const auto b = lane(1);
  const auto own = span(a, SpanKind::kCompute, 0, 20);
  const auto wait = span(a, SpanKind::kWait, 20, 21);
  const auto after = span(a, SpanKind::kCompute, 21, 30);
  span(b, SpanKind::kPut, 0, 10);
  arrow(b, 10, a, 15);
  EXPECT_EQ(path(), (Path{own, wait, after}));
}

TEST_F(AnalysisTest, ALaunchStartsAnIdleLane) {
  const auto host = lane(0);
  const auto sm = lane(0);
  const auto launch = span(host, SpanKind::kLaunch, 0, 5);
  span(host, SpanKind::kLaunch, 5, 12);
  const auto compute = span(sm, SpanKind::kCompute, 8, 40);
  arrow(host, 5, sm, 8);
  EXPECT_EQ(path(), (Path{launch, compute}));
}

TEST_F(AnalysisTest, ABusyLaneWasNotHeldUpByAnEarlierLaunch) {
  const auto host = lane(0);
  const auto engine = lane(0);
  span(host, SpanKind::kLaunch, 0, 5);
  const auto first = span(engine, SpanKind::kCopy, 6, 20);
  const auto second = span(engine, SpanKind::kCopy, 20, 40);
  arrow(host, 5, engine, 7);  // enqueued while the first copy ran
  EXPECT_EQ(path(), (Path{first, second}));
}

TEST_F(AnalysisTest, KernelsGiveWayToWhatTheyContain) {
  const auto a = lane(0);
  const auto b = lane(1);
  span(a, SpanKind::kKernel, 0, 100);
  const auto put = span(a, SpanKind::kPut, 10, 40);
  span(a, SpanKind::kSignal, 40, 40);
  span(a, SpanKind::kCompute, 40, 100);
  const auto wait = span(b, SpanKind::kWait, 0, 50);
  const auto last = span(b, SpanKind::kCompute, 50, 120);
  arrow(a, 39, b, 50);  // sent while the put was going on
  EXPECT_EQ(path(), (Path{put, wait, last}));
}

TEST_F(AnalysisTest, ArrowsInACircleEnd) {
  const auto a = lane(0);
  const auto b = lane(1);
  span(a, SpanKind::kWait, 0, 10);
  span(b, SpanKind::kWait, 0, 10);
  arrow(a, 10, b, 10);
  arrow(b, 10, a, 10);
  EXPECT_EQ(path().size(), 2U);
}

TEST_F(AnalysisTest, LaneUseAddsUpToTheDuration) {
  const auto a = lane(0);
  span(a, SpanKind::kKernel, 0, 90);
  span(a, SpanKind::kCompute, 10, 30);
  span(a, SpanKind::kWait, 30, 50);
  span(a, SpanKind::kCompute, 45, 60);  // overlaps the wait: the lane was busy
  timeline_.add(Span{a, SpanKind::kStore, 0, 60, 70, 4096});
  timeline_.end = 100;
  const LaneUse use = lane_use(timeline_)[0];
  EXPECT_EQ(use.busy, 45);
  EXPECT_EQ(use.waiting, 15);
  EXPECT_EQ(use.idle, 40);
  EXPECT_EQ(use.bytes, 4096);
}

TEST_F(AnalysisTest, PathOfAnOverlappedGemmGoesBackToTheLaunch) {
  testing::Shape shape;
  shape.sms = 8;
  const Timeline gemm = testing::synthetic_gemm(shape);
  const auto steps = critical_path(gemm);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(gemm.spans[steps.back().span].end, gemm.end);
  EXPECT_LE(gemm.spans[steps.front().span].begin, 10 * kMicrosecond);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LE(gemm.spans[steps[i - 1].span].begin, gemm.spans[steps[i].span].end);
  }
}

TEST(Timeline, InternsEqualTextsOnce) {
  Timeline timeline;
  EXPECT_EQ(timeline.intern(""), 0U);
  const auto a = timeline.intern("tile");
  EXPECT_EQ(timeline.intern("tile"), a);
  EXPECT_NE(timeline.intern("tile 2"), a);
  EXPECT_EQ(timeline.label(a), "tile");
  const Timeline copy = timeline;
  EXPECT_EQ(copy.label(a), "tile");
}

}  // namespace
}  // namespace tandem::trace
