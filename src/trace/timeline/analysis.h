#pragma once
/// What a timeline tells: the chain of spans that decided its end, and how busy each lane was.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/timeline.h"

namespace tandem::trace {

/// One step of the critical path.
struct PathStep {
  std::size_t span;  ///< Index into Timeline::spans.
  /// Index into Timeline::arrows of the arrow that led here from the step before; -1 where the step before is on the
  /// same lane.
  std::int64_t arrow = -1;
};

/// The chain of spans that decided the end, earliest first; empty for a timeline without spans.
///
/// Walked backwards from the span that ended last. Links and NICs are no part of it: path_parts says where it waited
/// for them. A wait is left through the last arrow that arrived during it; any other span through the span before it on
/// its lane where that one ends just when this begins, else through the last arrow that arrived in the gap between the
/// two. An arrow leads to the span of its source lane that was going on, or had just ended, at `from`; where the lane
/// was idle then because of another arrow, that one is followed. Spans that contain others (a kernel) are left out in
/// favour of what they contain.
std::vector<PathStep> critical_path(const Timeline& timeline);

/// The leaf of a lane that was going on at `at` or had just ended, else the last one before; -1 where there is none. A
/// leaf that begins at `at` counts only if it is empty or nothing stands before it. `leaves` is one list of
/// leaves_by_lane.
std::int64_t leaf_at(const Timeline& timeline, const std::vector<std::size_t>& leaves, Time at);

/// Whether a lane is a direction of a link or a NIC.
bool is_resource(LaneKind kind);

/// How a lane spent the timeline's duration; the three times add up to it (spans beyond begin and end are cut).
struct LaneUse {
  Time busy = 0;     ///< Covered by spans other than waits (containers not counted).
  Time waiting = 0;  ///< Covered by waits alone.
  Time idle = 0;     ///< Covered by nothing.
  Size bytes = 0;    ///< Sum over the lane's spans (containers not counted).
};

/// One entry a lane, in the order of Timeline::lanes.
std::vector<LaneUse> lane_use(const Timeline& timeline);

/// Spans that contain no other span of their lane, by lane, each list in order of begin, then end, then index.
std::vector<std::vector<std::size_t>> leaves_by_lane(const Timeline& timeline);

}  // namespace tandem::trace
