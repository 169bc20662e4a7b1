#include "trace/timeline/overview.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "trace/timeline/analysis.h"

namespace tandem::trace {
namespace {

constexpr std::array<std::pair<LaneKind, const char*>, 6> kParts{{{LaneKind::kSm, "SMs"},
                                                                  {LaneKind::kCopyEngine, "copy engines"},
                                                                  {LaneKind::kLinkOut, "links out"},
                                                                  {LaneKind::kLinkIn, "links in"},
                                                                  {LaneKind::kNicOut, "NICs out"},
                                                                  {LaneKind::kNicIn, "NICs in"}}};

/// Busy time of the lanes of one kind, by node and bin.
class Busy {
 public:
  Busy(const Timeline& timeline, int pes_per_node, int nodes, int bins)
      : timeline_(timeline),
        pes_per_node_(pes_per_node),
        bins_(bins),
        time_(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(bins), 0.0),
        lanes_(static_cast<std::size_t>(nodes), 0) {}

  void add(std::uint32_t lane, const std::vector<std::size_t>& leaves) {
    const auto node = static_cast<std::size_t>(timeline_.lanes[lane].pe / pes_per_node_);
    ++lanes_[node];
    double* const row = time_.data() + node * static_cast<std::size_t>(bins_);
    const double bin = static_cast<double>(timeline_.duration()) / bins_;
    for (const std::size_t index : leaves) {
      const Span& span = timeline_.spans[index];
      if (span.kind == SpanKind::kWait || timeline_.duration() <= 0) continue;
      const double begin = std::max(0.0, static_cast<double>(span.begin - timeline_.begin) / bin);
      const double end = std::min<double>(bins_, static_cast<double>(span.end - timeline_.begin) / bin);
      for (int i = static_cast<int>(begin); i < end; ++i)
        row[i] += std::min<double>(end, i + 1) - std::max<double>(begin, i);
    }
  }

  Overview::Part take(const char* name) const {
    Overview::Part part{.name = name, .nodes = static_cast<int>(lanes_.size())};
    std::vector<double> whole;
    for (std::size_t node = 0; node < lanes_.size(); ++node) {
      double sum = 0;
      for (int i = 0; i < bins_; ++i) {
        const double share =
            time_[node * static_cast<std::size_t>(bins_) + static_cast<std::size_t>(i)] / std::max(1, lanes_[node]);
        part.percent.push_back(static_cast<std::uint8_t>(std::lround(100 * std::min(1.0, share))));
        sum += share;
      }
      if (lanes_[node] > 0) whole.push_back(100 * sum / bins_);
    }
    std::sort(whole.begin(), whole.end());
    const auto at = [&](std::size_t i) { return static_cast<int>(std::lround(whole[i])); };
    if (!whole.empty()) {
      part.least = at(0);
      part.median = at(whole.size() / 2);
      part.most = at(whole.size() - 1);
    }
    return part;
  }

 private:
  const Timeline& timeline_;
  int pes_per_node_;
  int bins_;
  std::vector<double> time_;  // unit: one lane
  std::vector<int> lanes_;
};

}  // namespace

Overview overview_of(const Timeline& timeline, int bins) {
  int pes = 1;
  for (const Lane& lane : timeline.lanes) pes = std::max(pes, lane.pe + 1);
  Overview overview{.bins = bins, .pes_per_node = timeline.pes_per_node > 0 ? timeline.pes_per_node : pes};
  const int nodes = (pes + overview.pes_per_node - 1) / overview.pes_per_node;
  const auto leaves = leaves_by_lane(timeline);
  for (const auto& [kind, name] : kParts) {
    Busy busy(timeline, overview.pes_per_node, nodes, bins);
    bool any = false;
    for (std::uint32_t lane = 0; lane < timeline.lanes.size(); ++lane) {
      if (timeline.lanes[lane].kind != kind) continue;
      busy.add(lane, leaves[lane]);
      any = true;
    }
    if (any) overview.parts.push_back(busy.take(name));
  }
  return overview;
}

}  // namespace tandem::trace
