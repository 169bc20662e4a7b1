#include "trace/timeline/analysis.h"

#include <algorithm>
#include <tuple>

namespace tandem::trace {
namespace {

/// The leaves among one lane's spans. A container is a span with a non-empty span inside, or a kernel with anything
/// inside.
std::vector<std::size_t> leaves_of(const std::vector<Span>& spans, std::vector<std::size_t> members) {
  const auto outer_first = [&](std::size_t a, std::size_t b) {
    const Span &x = spans[a], &y = spans[b];
    return std::tuple(x.begin, -x.end, x.kind != SpanKind::kKernel, a) <
           std::tuple(y.begin, -y.end, y.kind != SpanKind::kKernel, b);
  };
  std::sort(members.begin(), members.end(), outer_first);
  std::vector<bool> container(members.size(), false);
  std::vector<std::size_t> open;  // positions in `members`, outermost first
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Span& span = spans[members[i]];
    while (!open.empty() && spans[members[open.back()]].end < span.end) open.pop_back();
    while (!open.empty() && spans[members[open.back()]].end <= span.begin) open.pop_back();
    for (const std::size_t outer : open) {
      const bool kernel = spans[members[outer]].kind == SpanKind::kKernel;
      container[outer] = container[outer] || kernel || span.end > span.begin;
    }
    open.push_back(i);
  }
  std::vector<std::size_t> leaves;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!container[i]) leaves.push_back(members[i]);
  }
  std::sort(leaves.begin(), leaves.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(spans[a].begin, spans[a].end, a) < std::tuple(spans[b].begin, spans[b].end, b);
  });
  return leaves;
}

std::vector<std::vector<std::size_t>> arrows_by_target(const Timeline& timeline) {
  std::vector<std::vector<std::size_t>> arriving(timeline.lanes.size());
  for (std::size_t i = 0; i < timeline.arrows.size(); ++i) arriving[timeline.arrows[i].to_lane].push_back(i);
  for (auto& list : arriving) {
    std::sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(timeline.arrows[a].to, a) < std::tuple(timeline.arrows[b].to, b);
    });
  }
  return arriving;
}

/// The walk from the end to the begin. `place_` holds each leaf's index in the list of its lane.
class Walk {
 public:
  explicit Walk(const Timeline& timeline)
      : timeline_(timeline),
        leaves_(leaves_by_lane(timeline)),
        arriving_(arrows_by_target(timeline)),
        place_(timeline.spans.size(), -1),
        visited_(timeline.spans.size(), false) {
    for (const auto& lane : leaves_) {
      for (std::size_t i = 0; i < lane.size(); ++i) place_[lane[i]] = static_cast<std::int64_t>(i);
    }
  }

  std::vector<PathStep> run() {
    std::vector<PathStep> path;
    for (std::int64_t span = last(); span >= 0 && !visited_[static_cast<std::size_t>(span)];) {
      visited_[static_cast<std::size_t>(span)] = true;
      path.push_back({static_cast<std::size_t>(span), cause(static_cast<std::size_t>(span))});
      span = path.back().arrow >= 0 ? source(path.back().arrow) : before(path.back().span);
    }
    if (!path.empty()) path.back().arrow = -1;  // the first step has no predecessor
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  const Span& span(std::size_t index) const { return timeline_.spans[index]; }

  std::int64_t last() const {
    std::int64_t best = -1;
    for (std::size_t i = 0; i < timeline_.spans.size(); ++i) {
      if (place_[i] < 0 || is_resource(timeline_.lanes[span(i).lane].kind)) continue;
      if (best < 0 || span(i).end > span(static_cast<std::size_t>(best)).end) best = static_cast<std::int64_t>(i);
    }
    return best;
  }

  /// Returns the leaf before `index` on its lane that had ended when it began, or -1.
  std::int64_t before(std::size_t index) const {
    const auto& lane = leaves_[span(index).lane];
    for (std::int64_t i = place_[index] - 1; i >= 0; --i) {
      const std::size_t candidate = lane[static_cast<std::size_t>(i)];
      if (span(candidate).end <= span(index).begin) return static_cast<std::int64_t>(candidate);
    }
    return -1;
  }

  /// Returns the last arrow that reached `lane` in (after, until], or -1.
  std::int64_t arrival(std::uint32_t lane, Time after, Time until) const {
    const auto& list = arriving_[lane];
    const auto next = std::upper_bound(list.begin(), list.end(), until,
                                       [&](Time t, std::size_t a) { return t < timeline_.arrows[a].to; });
    if (next == list.begin() || timeline_.arrows[*(next - 1)].to <= after) return -1;
    return static_cast<std::int64_t>(*(next - 1));
  }

  /// Returns the arrow that let `index` end (a wait) or begin (other spans), or -1 if its own lane did.
  std::int64_t cause(std::size_t index) const {
    const Span& it = span(index);
    if (it.kind == SpanKind::kWait) {
      if (const std::int64_t arrow = arrival(it.lane, it.begin, it.end); arrow >= 0) return arrow;
    }
    const std::int64_t previous = before(index);
    const Time free_since = previous < 0 ? timeline_.begin - 1 : span(static_cast<std::size_t>(previous)).end;
    return arrival(it.lane, free_since, it.begin);
  }

  std::int64_t source(std::int64_t arrow) const {
    std::int64_t leaf = -1;
    for (std::size_t hops = 0; arrow >= 0 && hops <= timeline_.arrows.size(); ++hops) {
      const Arrow& it = timeline_.arrows[static_cast<std::size_t>(arrow)];
      leaf = leaf_at(timeline_, leaves_[it.from_lane], it.from);
      const Time free_since = leaf < 0 ? timeline_.begin - 1 : span(static_cast<std::size_t>(leaf)).end;
      arrow = arrival(it.from_lane, free_since, it.from);
    }
    return leaf;
  }

  const Timeline& timeline_;
  std::vector<std::vector<std::size_t>> leaves_;
  std::vector<std::vector<std::size_t>> arriving_;
  std::vector<std::int64_t> place_;
  std::vector<bool> visited_;
};

/// Returns the time within [begin, end) that the spans cover. `spans` is sorted by begin.
Time covered(const Timeline& timeline, const std::vector<std::size_t>& spans, bool waits_too) {
  Time sum = 0;
  Time until = timeline.begin;
  for (const std::size_t index : spans) {
    const Span& span = timeline.spans[index];
    if (span.kind == SpanKind::kWait && !waits_too) continue;
    const Time end = std::min(span.end, timeline.end);
    const Time begin = std::max(span.begin, until);
    if (end > begin) sum += end - begin;
    until = std::max(until, end);
  }
  return sum;
}

}  // namespace

bool is_resource(LaneKind kind) {
  return kind == LaneKind::kLinkOut || kind == LaneKind::kLinkIn || kind == LaneKind::kNicOut ||
         kind == LaneKind::kNicIn;
}

std::vector<std::vector<std::size_t>> leaves_by_lane(const Timeline& timeline) {
  std::vector<std::vector<std::size_t>> lanes(timeline.lanes.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) lanes[timeline.spans[i].lane].push_back(i);
  for (auto& lane : lanes) lane = leaves_of(timeline.spans, std::move(lane));
  return lanes;
}

std::int64_t leaf_at(const Timeline& timeline, const std::vector<std::size_t>& leaves, Time at) {
  auto next = std::upper_bound(leaves.begin(), leaves.end(), at,
                               [&](Time t, std::size_t s) { return t < timeline.spans[s].begin; });
  while (next != leaves.begin()) {
    const Span& candidate = timeline.spans[*--next];
    const bool just_began = candidate.begin == at && candidate.end > at;
    if (!just_began || next == leaves.begin()) return static_cast<std::int64_t>(*next);
  }
  return -1;
}

std::vector<PathStep> critical_path(const Timeline& timeline) { return Walk(timeline).run(); }

std::vector<LaneUse> lane_use(const Timeline& timeline) {
  std::vector<LaneUse> uses;
  uses.reserve(timeline.lanes.size());
  for (const auto& leaves : leaves_by_lane(timeline)) {
    LaneUse use;
    use.busy = covered(timeline, leaves, false);
    const Time any = covered(timeline, leaves, true);
    use.waiting = any - use.busy;
    use.idle = timeline.duration() - any;
    for (const std::size_t index : leaves) use.bytes += timeline.spans[index].bytes;
    uses.push_back(use);
  }
  return uses;
}

}  // namespace tandem::trace
