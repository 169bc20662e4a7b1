#pragma once
/// Analysis of a timeline: the critical path, and the use of each lane.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/timeline.h"

namespace tandem::trace {

/// One step of the critical path.
struct PathStep {
  std::size_t span;  ///< Index into Timeline::spans.
  /// Index into Timeline::arrows of the arrow from the previous step, or -1 if that step is on the same lane.
  std::int64_t arrow = -1;
};

/// Returns the critical path: the spans that decided the end, earliest first. It is empty for a timeline without spans.
///
/// The walk goes backwards from the span that ended last. It leaves a wait through the last arrow that arrived during
/// it. It leaves another span through the previous span of its lane if that ends exactly at its begin. Otherwise it
/// takes the last arrow that arrived between the two.
///
/// An arrow leads to the span of its source lane that was active, or had just ended, at `from`. If the lane was idle
/// then because of another arrow, that arrow is followed. Spans that contain others, such as kernels, are replaced by
/// their contents. Links and NICs are excluded; path_parts gives the waits for them.
std::vector<PathStep> critical_path(const Timeline& timeline);

/// Returns the leaf of a lane that was active at `at` or had just ended, else the last one before, else -1. A leaf that
/// begins at `at` counts only if it is empty or has no predecessor. `leaves` is one list of leaves_by_lane.
std::int64_t leaf_at(const Timeline& timeline, const std::vector<std::size_t>& leaves, Time at);

/// Returns whether a lane is a direction of a link or a NIC.
bool is_resource(LaneKind kind);

/// The use of a lane. The three times add up to the timeline's duration; spans are cut at begin and end.
struct LaneUse {
  Time busy = 0;     ///< Covered by spans other than waits (containers not counted).
  Time waiting = 0;  ///< Covered by waits alone.
  Time idle = 0;     ///< Covered by nothing.
  Size bytes = 0;    ///< Sum over the lane's spans (containers not counted).
};

/// Returns one entry for each lane, in the order of Timeline::lanes.
std::vector<LaneUse> lane_use(const Timeline& timeline);

/// Returns the spans without contents by lane. Each list is sorted by begin, then end, then index.
std::vector<std::vector<std::size_t>> leaves_by_lane(const Timeline& timeline);

}  // namespace tandem::trace
