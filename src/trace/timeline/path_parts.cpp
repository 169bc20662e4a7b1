#include "trace/timeline/path_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tandem::trace {
namespace {

/// Spans on links and NICs by the lane that requested them, in the order of the requests.
class Transfers {
 public:
  explicit Transfers(const Timeline& timeline) : timeline_(timeline), by_lane_(timeline.lanes.size()) {
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      if (timeline.spans[i].by != kNoLane) by_lane_[timeline.spans[i].by].asked.push_back(i);
    }
    for (OfLane& of : by_lane_) {
      std::sort(of.asked.begin(), of.asked.end(), [&](std::size_t a, std::size_t b) {
        return std::tuple(timeline.spans[a].asked, a) < std::tuple(timeline.spans[b].asked, b);
      });
      Time latest = timeline.begin;
      for (const std::size_t i : of.asked) of.reach.push_back(latest = std::max(latest, timeline.spans[i].end));
    }
  }

  /// Transfers of `lane` that were requested by `asked_until` and ended after `begin`, but not after `ended_until`.
  std::vector<const Span*> of(std::uint32_t lane, Time begin, Time asked_until, Time ended_until) const {
    const OfLane& all = by_lane_[lane];
    std::vector<const Span*> found;
    auto next = std::upper_bound(all.asked.begin(), all.asked.end(), asked_until,
                                 [&](Time t, std::size_t i) { return t < timeline_.spans[i].asked; });
    while (next != all.asked.begin()) {
      const auto place = static_cast<std::size_t>(--next - all.asked.begin());
      if (all.reach[place] <= begin) break;
      const Span& span = timeline_.spans[*next];
      if (span.end > begin && span.end <= ended_until) found.push_back(&span);
    }
    return found;
  }

 private:
  struct OfLane {
    std::vector<std::size_t> asked;
    std::vector<Time> reach;  // latest end of all spans up to this one
  };
  const Timeline& timeline_;
  std::vector<OfLane> by_lane_;
};

class Parts {
 public:
  Parts(const Timeline& timeline, const std::vector<PathStep>& path)
      : timeline_(timeline), path_(path), transfers_(timeline), leaves_(leaves_by_lane(timeline)) {}

  std::vector<PathPart> take() {
    now_ = timeline_.begin;
    for (std::size_t i = 0; i < path_.size(); ++i) add_step(i);
    add(now_, timeline_.end, {.cause = PathCause::kIdle});
    return std::move(parts_);
  }

 private:
  const Arrow& arrow_to(std::size_t step) const {
    return timeline_.arrows[static_cast<std::size_t>(path_[step].arrow)];
  }

  void add_step(std::size_t i) {
    const Span& span = timeline_.spans[path_[i].span];
    const bool by_arrow = path_[i].arrow >= 0;
    const bool entered_late = by_arrow && span.kind == SpanKind::kWait;
    const Time begin = entered_late ? arrow_to(i).to : span.begin;
    if (by_arrow) add_way(arrow_to(i), begin);
    add(now_, begin, {.cause = i == 0 ? PathCause::kLaunch : PathCause::kIdle, .kind = SpanKind::kLaunch});
    const bool left_early = i + 1 < path_.size() && path_[i + 1].arrow >= 0;
    add_work(span, left_early ? std::min(span.end, arrow_to(i + 1).from) : span.end);
  }

  /// Adds the time from a cause to its effect.
  void add_way(const Arrow& arrow, Time until) {
    add(now_, arrow.from, {.cause = PathCause::kIdle});
    const bool starts = timeline_.label(arrow.label) == "start" || timeline_.label(arrow.label) == "launch";
    const PathPart rest{.cause = starts ? PathCause::kLaunch : PathCause::kLatency,
                        .kind = starts ? SpanKind::kLaunch : SpanKind::kSignal,
                        .lane = arrow.to_lane};
    if (starts) return add(now_, until, rest);
    add_over(transfers_.of(arrow.from_lane, now_, arrow.from, arrow.to), until, rest);
  }

  void add_work(const Span& span, Time until) {
    PathPart rest{.cause = PathCause::kWork, .kind = span.kind, .lane = span.lane, .label = span.label};
    const bool is_moving = span.kind == SpanKind::kLoad || span.kind == SpanKind::kStore ||
                           span.kind == SpanKind::kPut || span.kind == SpanKind::kGet || span.kind == SpanKind::kCopy;
    const bool is_waiting = span.kind == SpanKind::kWait || span.kind == SpanKind::kSignal;
    if (!is_moving && !is_waiting) return add(now_, until, rest);
    auto transfers = transfers_.of(span.lane, now_, until, is_moving ? until : timeline_.end);
    // A sender continues when its bytes have left. It does not wait for the receiver's end of the link.
    if (is_moving)
      std::erase_if(transfers, [&](const Span* t) { return timeline_.lanes[t->lane].kind == LaneKind::kLinkIn; });
    if (is_waiting && !transfers.empty()) rest.cause = PathCause::kLatency;
    add_over(transfers, until, rest);
  }

  /// Splits [now_, until) by the transfers that explain it. Moving bytes take precedence over queued ones.
  void add_over(std::vector<const Span*> transfers, Time until, const PathPart& rest) {
    const Time from = now_;
    if (until <= from) return;
    std::vector<PathPart> gaps{rest};
    gaps[0].begin = from;
    gaps[0].end = until;
    std::vector<PathPart> filled;
    // Sorted by descending end. The sender's end of a passage precedes the receiver's.
    std::sort(transfers.begin(), transfers.end(), [&](const Span* a, const Span* b) {
      return std::tuple(-a->end, -a->begin, timeline_.lanes[a->lane].kind, a->lane) <
             std::tuple(-b->end, -b->begin, timeline_.lanes[b->lane].kind, b->lane);
    });
    for (const Span* t : transfers)
      fill(gaps, filled, {t->begin, t->end, PathCause::kMoving, SpanKind::kTransfer, t->lane, t->label});
    for (const Span* t : transfers) {
      for (const PathPart& busy : busy_between(t->lane, std::max(from, t->asked), std::min(until, t->begin)))
        fill(gaps, filled, busy);
      fill(gaps, filled, {t->asked, t->begin, PathCause::kPaced, SpanKind::kTransfer, t->lane, t->label});
    }
    filled.insert(filled.end(), gaps.begin(), gaps.end());
    std::sort(filled.begin(), filled.end(), [](const PathPart& a, const PathPart& b) { return a.begin < b.begin; });
    for (const PathPart& part : filled) add(part.begin, part.end, part);
  }

  /// Moves the parts of the gaps that `part` covers to `filled`.
  static void fill(std::vector<PathPart>& gaps, std::vector<PathPart>& filled, const PathPart& part) {
    std::vector<PathPart> left;
    for (const PathPart& gap : gaps) {
      PathPart covered = part;
      covered.begin = std::max(gap.begin, part.begin);
      covered.end = std::min(gap.end, part.end);
      if (covered.begin >= covered.end) {
        left.push_back(gap);
        continue;
      }
      filled.push_back(covered);
      PathPart before = gap, after = gap;
      before.end = covered.begin;
      after.begin = covered.end;
      for (const PathPart& piece : {before, after})
        if (piece.begin < piece.end) left.push_back(piece);
    }
    gaps = std::move(left);
  }

  /// Returns when a link or NIC moved bytes within [begin, end).
  std::vector<PathPart> busy_between(std::uint32_t lane, Time begin, Time end) const {
    std::vector<PathPart> busy;
    if (begin >= end) return busy;
    const auto& spans = leaves_[lane];
    auto next = std::lower_bound(spans.begin(), spans.end(), begin,
                                 [&](std::size_t s, Time t) { return timeline_.spans[s].end <= t; });
    for (; next != spans.end() && timeline_.spans[*next].begin < end; ++next) {
      const Span& span = timeline_.spans[*next];
      if (!busy.empty() && busy.back().end == span.begin)
        busy.back().end = span.end;
      else
        busy.push_back({span.begin, span.end, PathCause::kQueued, SpanKind::kTransfer, lane, 0});
    }
    if (!busy.empty()) {
      busy.front().begin = std::max(busy.front().begin, begin);
      busy.back().end = std::min(busy.back().end, end);
    }
    return busy;
  }

  void add(Time begin, Time end, PathPart part) {
    part.begin = std::max(begin, now_);
    part.end = std::min(end, timeline_.end);
    if (part.begin >= part.end) return;
    now_ = part.end;
    parts_.push_back(part);
  }

  const Timeline& timeline_;
  const std::vector<PathStep>& path_;
  Transfers transfers_;
  std::vector<std::vector<std::size_t>> leaves_;
  Time now_ = 0;
  std::vector<PathPart> parts_;
};

/// Parts of one group have one name.
using PathGroup = std::tuple<PathCause, SpanKind, LaneKind, std::string>;

PathGroup group_of(const Timeline& timeline, const PathPart& part) {
  const bool on_resource =
      part.cause == PathCause::kMoving || part.cause == PathCause::kQueued || part.cause == PathCause::kPaced;
  if (on_resource) return {part.cause, part.kind, timeline.lanes[part.lane].kind, ""};
  // Waits are of many kinds (fence, quiet, signal), which the label distinguishes.
  const bool by_label = part.cause == PathCause::kWork && part.kind == SpanKind::kWait;
  const bool is_memory = part.kind == SpanKind::kLoad && timeline.label(part.label) == "local memory";
  return {part.cause, part.cause == PathCause::kWork ? part.kind : SpanKind::kLaunch, LaneKind::kSm,
          by_label || is_memory ? timeline.label(part.label) : ""};
}

std::string name_of(const PathGroup& group, const std::string& label_or_lanes) {
  const auto& [cause, kind, lane_kind, label] = group;
  switch (cause) {
    case PathCause::kWork:
      return label.empty() ? std::string(name(kind)) : label;
    case PathCause::kMoving:
      return label_or_lanes;
    case PathCause::kQueued:
      return "queue of " + label_or_lanes;
    case PathCause::kPaced:
      return "queue pairs of " + label_or_lanes;
    case PathCause::kLatency:
      return "latency";
    case PathCause::kLaunch:
      return "launch";
    case PathCause::kIdle:
      return "idle";
  }
  return {};
}

}  // namespace

std::vector<PathPart> path_parts(const Timeline& timeline, const std::vector<PathStep>& path) {
  if (path.empty()) return {};
  return Parts(timeline, path).take();
}

std::vector<PathShare> path_shares(const Timeline& timeline, const std::vector<PathPart>& parts) {
  struct Sum {
    Time time = 0;
    SpanKind kind = SpanKind::kKernel;
    std::map<std::uint32_t, Time> lanes;
  };
  std::map<PathGroup, Sum> sums;
  for (const PathPart& part : parts) {
    Sum& sum = sums[group_of(timeline, part)];
    sum.time += part.end - part.begin;
    sum.kind = part.kind;
    if (part.lane != kNoLane) sum.lanes[part.lane] += part.end - part.begin;
  }
  std::vector<PathShare> shares;
  for (const auto& [group, sum] : sums) {
    std::string lanes;
    if (!sum.lanes.empty()) {
      const auto most = std::max_element(sum.lanes.begin(), sum.lanes.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      lanes = timeline.lanes[most->first].name;
      if (sum.lanes.size() > 1) lanes += fmt::format(" and {} more", sum.lanes.size() - 1);
    }
    shares.push_back({name_of(group, lanes), std::get<PathCause>(group), sum.kind, sum.time});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  return shares;
}

}  // namespace tandem::trace
