#include "trace/timeline/cut.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tandem::trace {

Timeline cut(const Timeline& whole, Time begin, Time end) {
  // Only the kept part is copied, because a timeline of many PEs would not fit into memory twice.
  Timeline part = whole.without_events();
  part.begin = begin;
  part.end = end;
  const auto is_inside = [&](Time from, Time to) { return from >= begin && to <= end; };
  std::copy_if(whole.spans.begin(), whole.spans.end(), std::back_inserter(part.spans),
               [&](const Span& span) { return is_inside(span.begin, span.end); });
  std::copy_if(whole.arrows.begin(), whole.arrows.end(), std::back_inserter(part.arrows),
               [&](const Arrow& arrow) { return is_inside(arrow.from, arrow.to); });
  part.spans.shrink_to_fit();
  part.arrows.shrink_to_fit();
  return part;
}

Timeline without_empty_lanes(Timeline timeline) {
  std::vector<bool> used(timeline.lanes.size(), false);
  for (const Span& span : timeline.spans) used[span.lane] = true;
  for (const Arrow& arrow : timeline.arrows) used[arrow.from_lane] = used[arrow.to_lane] = true;
  std::vector<std::uint32_t> number(timeline.lanes.size(), 0);
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < used.size(); ++i) {
    number[i] = static_cast<std::uint32_t>(lanes.size());
    if (used[i]) lanes.push_back(timeline.lanes[i]);
  }
  timeline.lanes = std::move(lanes);
  for (Span& span : timeline.spans) {
    span.lane = number[span.lane];
    if (span.by != kNoLane) span.by = used[span.by] ? number[span.by] : kNoLane;
  }
  for (Arrow& arrow : timeline.arrows) {
    arrow.from_lane = number[arrow.from_lane];
    arrow.to_lane = number[arrow.to_lane];
  }
  return timeline;
}

}  // namespace tandem::trace
