#include "trace/timeline/cut.h"

#include <gtest/gtest.h>

namespace tandem::trace {
namespace {

Timeline three_lanes() {
  Timeline timeline;
  timeline.pes = 2;
  for (const char* const name : {"sm 0", "sm 1", "sm 2"}) timeline.add_lane(0, LaneKind::kSm, name);
  const std::uint32_t label = timeline.intern("load");
  timeline.add(Span{0, SpanKind::kLoad, label, 0, 10, 0});
  timeline.add(Span{1, SpanKind::kLoad, label, 20, 30, 0});
  timeline.add(Span{2, SpanKind::kLoad, label, 25, 45, 0});
  timeline.add(Arrow{0, 1, label, 10, 20});
  timeline.add(Arrow{1, 2, label, 22, 25});
  timeline.end = 50;
  return timeline;
}

TEST(Cut, LeavesOutWhatCrossesTheEnds) {
  const Timeline part = cut(three_lanes(), 20, 40);
  EXPECT_EQ(part.duration(), 20);
  EXPECT_EQ(part.lanes.size(), 3U);
  ASSERT_EQ(part.spans.size(), 1U);
  EXPECT_EQ(part.spans[0].lane, 1U);
  ASSERT_EQ(part.arrows.size(), 1U);
  EXPECT_EQ(part.arrows[0].from, 22);
}

TEST(Cut, LanesWithoutAnythingCanGo) {
  const Timeline part = without_empty_lanes(cut(three_lanes(), 20, 50));
  ASSERT_EQ(part.lanes.size(), 2U);
  EXPECT_EQ(part.lanes[0].name, "sm 1");
  ASSERT_EQ(part.spans.size(), 2U);
  EXPECT_EQ(part.spans[0].lane, 0U);
  EXPECT_EQ(part.spans[1].lane, 1U);
  ASSERT_EQ(part.arrows.size(), 1U);
  EXPECT_EQ(part.arrows[0].from_lane, 0U);
  EXPECT_EQ(part.arrows[0].to_lane, 1U);
}

}  // namespace
}  // namespace tandem::trace
