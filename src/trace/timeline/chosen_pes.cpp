#include "trace/timeline/chosen_pes.h"

#include <algorithm>
#include <tuple>

namespace tandem::trace {
namespace {

constexpr std::int64_t kLeftOut = -1;

/// Copies the elements for which `keep` is true from `from` to `to`. Returns the new index of each old one, or
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

std::vector<int> chosen_pes(const Timeline& timeline, const std::vector<PathStep>& path, std::size_t max_spans,
                            std::size_t max_pes) {
  struct Pe {
    int number = 0;
    bool there = false;
    Time on_path = 0;
    Time end = 0;
    std::size_t spans = 0;
  };
  std::vector<Pe> pes;
  for (const Lane& lane : timeline.lanes) {
    if (static_cast<std::size_t>(lane.pe) >= pes.size()) pes.resize(static_cast<std::size_t>(lane.pe) + 1);
    pes[static_cast<std::size_t>(lane.pe)].there = true;
  }
  const auto pe_of = [&](const Span& span) -> Pe& {
    return pes[static_cast<std::size_t>(timeline.lanes[span.lane].pe)];
  };
  for (std::size_t i = 0; i < pes.size(); ++i) pes[i].number = static_cast<int>(i);
  for (const Span& span : timeline.spans) {
    Pe& pe = pe_of(span);
    ++pe.spans;
    if (!is_resource(timeline.lanes[span.lane].kind)) pe.end = std::max(pe.end, span.end);
  }
  for (const PathStep& step : path) {
    const Span& span = timeline.spans[step.span];
    pe_of(span).on_path += span.end - span.begin;
  }
  std::erase_if(pes, [](const Pe& pe) { return !pe.there; });
  std::sort(pes.begin(), pes.end(), [](const Pe& a, const Pe& b) {
    return std::tuple(-a.on_path, -a.end, a.number) < std::tuple(-b.on_path, -b.end, b.number);
  });
  std::vector<int> chosen;
  std::size_t spans = 0;
  for (const Pe& pe : pes) {
    spans += pe.spans;
    if (!chosen.empty() && (spans > max_spans || chosen.size() >= max_pes)) break;
    chosen.push_back(pe.number);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

PartOfPes part_of(const Timeline& timeline, const std::vector<PathStep>& path, const std::vector<int>& pes) {
  PartOfPes part;
  Timeline& kept = part.timeline;
  kept = timeline.without_events();
  kept.lanes.clear();
  const auto lanes = copy_kept(timeline.lanes, kept.lanes,
                               [&](const Lane& lane) { return std::binary_search(pes.begin(), pes.end(), lane.pe); });
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
    part.path.push_back({static_cast<std::size_t>(spans[step.span]), arrow});
  }
  return part;
}

}  // namespace tandem::trace
