#include "sim/run/timeline_profiler.h"

#include <gtest/gtest.h>

#include "tandem/error.h"

namespace tandem::sim {
namespace {

TEST(TimelineProfiler, RefusesMoreSpansAndArrowsThanItMayHold) {
  TimelineProfiler profiler;
  profiler.most_events = 3;
  const Lane lane = profiler.add_lane(0, LaneKind::kSm, "sm 0");
  Operation load;
  load.lane = lane;
  load.end = 10;
  profiler.on_operation(load);
  profiler.on_start(lane, 10, lane, 20);
  profiler.on_kernel(lane, "kernel", 0, 30);
  EXPECT_THROW(profiler.on_operation(load), OutOfMemory);
  // Events that follow while the run unwinds are dropped.
  profiler.on_operation(load);
  profiler.on_start(lane, 30, lane, 40);
  profiler.on_kernel(lane, "kernel", 30, 40);
  EXPECT_EQ(profiler.timeline.spans.size() + profiler.timeline.arrows.size(), 3U);
}

}  // namespace
}  // namespace tandem::sim
