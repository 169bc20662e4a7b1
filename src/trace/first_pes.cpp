#include "trace/first_pes.h"

#include <algorithm>

namespace tandem::trace {
namespace {

constexpr std::int64_t kLeftOut = -1;

/// Copies the elements that `keep` maps to true from `from` to `to`; returns the new number of each old one, or
/// kLeftOut.
template <class T, class Keep>
std::vector<std::int64_t> copy_kept(const std::vector<T>& from, std::vector<T>& to, Keep keep) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(from.size());
  for (const T& element : from) {
    numbers.push_back(keep(element) ? static_cast<std::int64_t>(to.size()) : kLeftOut);
    if (numbers.back() != kLeftOut) to.push_back(element);
  }
  return numbers;
}

}  // namespace

int pes_that_fit(const Timeline& timeline, std::size_t max_spans) {
  int count = 1;
  for (const Lane& lane : timeline.lanes) count = std::max(count, lane.pe + 1);
  std::vector<std::size_t> spans(static_cast<std::size_t>(count), 0);
  for (const Span& span : timeline.spans) ++spans[static_cast<std::size_t>(timeline.lanes[span.lane].pe)];
  std::size_t sum = spans[0];
  int fit = 1;
  while (fit < count && sum + spans[static_cast<std::size_t>(fit)] <= max_spans) {
    sum += spans[static_cast<std::size_t>(fit)];
    ++fit;
  }
  return fit;
}

FirstPes first_pes(const Timeline& timeline, const std::vector<PathStep>& path, int pes) {
  FirstPes first;
  Timeline& kept = first.timeline;
  kept.title = timeline.title;
  kept.machine = timeline.machine;
  kept.predicted = timeline.predicted;
  kept.pes = timeline.pes;
  kept.begin = timeline.begin;
  kept.end = timeline.end;
  for (const std::string& label : timeline.labels()) kept.intern(label);  // same numbers, since in the same order
  const auto lanes = copy_kept(timeline.lanes, kept.lanes, [&](const Lane& lane) { return lane.pe < pes; });
  const auto there = [&](std::uint32_t lane) { return lanes[lane] != kLeftOut; };
  const auto renumbered = [&](std::uint32_t lane) { return static_cast<std::uint32_t>(lanes[lane]); };

  const auto spans = copy_kept(timeline.spans, kept.spans, [&](const Span& span) { return there(span.lane); });
  const auto arrows = copy_kept(timeline.arrows, kept.arrows,
                                [&](const Arrow& arrow) { return there(arrow.from_lane) && there(arrow.to_lane); });
  for (Span& span : kept.spans) {
    span.lane = renumbered(span.lane);
    if (span.by != kNoLane) span.by = there(span.by) ? renumbered(span.by) : kNoLane;
  }
  for (Arrow& arrow : kept.arrows) {
    arrow.from_lane = renumbered(arrow.from_lane);
    arrow.to_lane = renumbered(arrow.to_lane);
  }
  for (const PathStep& step : path) {
    if (spans[step.span] == kLeftOut) continue;
    const std::int64_t arrow = step.arrow < 0 ? -1 : arrows[static_cast<std::size_t>(step.arrow)];
    first.path.push_back({static_cast<std::size_t>(spans[step.span]), arrow});
  }
  return first;
}

}  // namespace tandem::trace
