#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ostream>
#include <string_view>

#include "tandem/timeline.h"
#include "trace/timeline/analysis.h"
#include "trace/timeline/chosen_pes.h"
#include "trace/timeline/colours.h"
#include "trace/timeline/output_file.h"
#include "trace/timeline/path_parts.h"
#include "trace/timeline/text.h"

namespace tandem::trace {
namespace {

// All lengths are in points.
constexpr double kWidth = 1000;
constexpr double kLeft = 96;
constexpr double kRight = 14;
constexpr double kPlot = kWidth - kLeft - kRight;
constexpr double kTitle = 50;
constexpr double kHeading = 22;
constexpr double kShare = 20;
constexpr double kStrip = 5;
constexpr double kPeGap = 5;
constexpr double kTimelineGap = 10;
constexpr double kFooter = 24;
constexpr std::size_t kMaxPes = 4;
constexpr double kBin = 2;  // width of one step of a share

/// Kinds of a stacked chart from the bottom up: computation first, waiting last.
constexpr std::array<SpanKind, kSpanKinds> kPile{
    SpanKind::kCompute,  SpanKind::kLoad,   SpanKind::kStore,  SpanKind::kPut,    SpanKind::kGet, SpanKind::kCopy,
    SpanKind::kTransfer, SpanKind::kSignal, SpanKind::kLaunch, SpanKind::kKernel, SpanKind::kWait};

/// Lane kinds that get a strip. In a small picture one of a link's two directions is enough.
constexpr std::array<LaneKind, 3> kStrips{LaneKind::kCopyEngine, LaneKind::kLinkOut, LaneKind::kNicOut};

std::string colour(SpanKind kind) { return fmt::format("var(--k-{})", name(kind)); }

struct Group {
  int pe = 0;
  std::array<std::vector<std::uint32_t>, kLaneKinds> lanes;
  const std::vector<std::uint32_t>& of(LaneKind kind) const { return lanes[static_cast<std::size_t>(kind)]; }
};

/// The drawn part of a timeline: the PEs of the critical path first.
struct Shown {
  explicit Shown(const Timeline& whole) : timeline(whole), path(critical_path(whole)), groups(groups_of(whole, path)) {}

  const Timeline& timeline;
  std::vector<PathStep> path;
  std::vector<Group> groups;

 private:
  static std::vector<Group> groups_of(const Timeline& timeline, const std::vector<PathStep>& path);
};

std::vector<Group> Shown::groups_of(const Timeline& timeline, const std::vector<PathStep>& path) {
  std::vector<Group> groups;
  for (const int pe : chosen_pes(timeline, path, timeline.spans.size(), kMaxPes)) {
    Group group;
    group.pe = pe;
    for (std::uint32_t i = 0; i < timeline.lanes.size(); ++i) {
      const Lane& lane = timeline.lanes[i];
      if (lane.pe == pe) group.lanes[static_cast<std::size_t>(lane.kind)].push_back(i);
    }
    groups.push_back(group);
  }
  return groups;
}

double height_of(const Group& group) {
  double height = group.of(LaneKind::kSm).empty() ? 0 : kShare;
  for (const LaneKind kind : kStrips) height += group.of(kind).empty() ? 0 : kStrip + 1;
  return height + kPeGap;
}

double height_of(const Shown& shown) {
  double height = kHeading + kStrip + 4;  // includes the strip of the critical path
  for (const Group& group : shown.groups) height += height_of(group);
  return height + kTimelineGap;
}

/// The place that a lane shares with others: its SM ("sm 3" of "sm 3.1" and "sm 3 / role 0"), or the lane itself.
std::string_view place_of(const Lane& lane) {
  const std::string_view all = lane.name;
  return lane.kind == LaneKind::kSm ? all.substr(0, std::min(all.find('.'), all.find(" / "))) : all;
}

/// Equal parts of a timeline's time.
struct Bins {
  Bins(const Timeline& timeline, std::size_t bins)
      : count(bins),
        begin(timeline.begin),
        length(static_cast<double>(timeline.duration()) / static_cast<double>(bins)) {}

  /// Calls `use` with each part that the span touches, and how much of it the span covers.
  template <class Use>
  void cover(const Span& span, const Use& use) const {
    const double first = static_cast<double>(span.begin - begin) / length;
    const double last = static_cast<double>(span.end - begin) / length;
    for (auto i = static_cast<std::size_t>(std::max(0.0, first)); i < count && static_cast<double>(i) < last; ++i) {
      const double left = static_cast<double>(i);
      use(i, std::min(last, left + 1) - std::max(first, left));
    }
  }

  std::size_t count;
  Time begin;
  double length;  // picoseconds of a part
};

class Picture {
 public:
  Picture(const Report& report, std::ostream& out) : report_(report), out_(out) {
    for (const Timeline& timeline : report.timelines) {
      longest_ = std::max(longest_, timeline.duration());
      shown_.emplace_back(timeline);
    }
  }

  void draw() {
    double height = kTitle + kFooter;
    for (const Shown& shown : shown_) height += height_of(shown);
    head(height);
    draw_axis(height - kFooter);
    double y = kTitle;
    for (const Shown& shown : shown_) {
      draw_timeline(shown, y);
      y += height_of(shown);
    }
    draw_legend();
    out_ << "</svg>\n";
  }

 private:
  double x_of(Time since_begin) const {
    return kLeft + kPlot * static_cast<double>(since_begin) / static_cast<double>(longest_);
  }

  void text(double x, double y, const char* classes, std::string_view what) {
    fmt::print(out_, "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes, xml_text(what));
  }
  void rect(double x, double y, double width, double height, std::string_view fill) {
    fmt::print(out_, "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
               height, fill);
  }

  void head(double height) {
    fmt::print(out_,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
               "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n",
               kWidth, height, xml_text(report_.title));
    out_ << "<style>\nsvg { --bg: #ffffff; --ink: #14181f; --ink2: #5a6472; --track: #eceef2; --line: #d5dae1; "
         << kind_colours(false)
         << "}\n@media (prefers-color-scheme: dark) { svg { --bg: #0e1116; --ink: #e8ecf1; --ink2: #98a3b1; --line: "
            "#39424e; --track: "
            "#1f252e; "
         << kind_colours(true) << "} }\n"
         << "text { font: 11px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: var(--ink2); }\n"
         << ".title { font-size: 14px; font-weight: 600; fill: var(--ink); }\n"
         << ".name { font-size: 12.5px; font-weight: 600; fill: var(--ink); }\n.mid { text-anchor: middle; "
            "}\n</style>\n";
    rect(0, 0, kWidth, height, "var(--bg)");
    text(12, 20, "title", report_.title);
  }

  void draw_timeline(const Shown& shown, double y) {
    const auto& [timeline, path, groups] = shown;
    const auto leaves = leaves_by_lane(timeline);
    const std::string name = timeline.title + ": " + short_time(timeline.duration());
    text(12, y + 14, "name", name);
    std::string note = origin(timeline);
    if (static_cast<int>(groups.size()) < timeline.pes)
      note += fmt::format(", {} of {} PEs", groups.size(), timeline.pes);
    text(24 + 7.5 * static_cast<double>(name.size()), y + 14, "", note);
    y += kHeading;
    for (const Group& group : groups) {
      draw_group(timeline, group, leaves, y);
      y += height_of(group);
    }
    draw_path(timeline, path, y);
  }

  void draw_group(const Timeline& timeline, const Group& group, const std::vector<std::vector<std::size_t>>& leaves,
                  double y) {
    text(24, y + 14, "", fmt::format("PE {}", group.pe));
    const double length = x_of(timeline.duration()) - kLeft;
    if (!group.of(LaneKind::kSm).empty()) {
      rect(kLeft, y, length, kShare, "var(--track)");
      draw_share(timeline, group.of(LaneKind::kSm), leaves, y, kShare);
      y += kShare + 1;
    }
    for (const LaneKind kind : kStrips) {
      if (group.of(kind).empty()) continue;
      rect(kLeft, y, length, kStrip, "var(--track)");
      draw_share(timeline, group.of(kind), leaves, y, kStrip);
      y += kStrip + 1;
    }
  }

  /// Draws the share by kind over time as a stacked chart with one area for each kind: of the lanes, or of the SMs.
  void draw_share(const Timeline& timeline, const std::vector<std::uint32_t>& lanes,
                  const std::vector<std::vector<std::size_t>>& leaves, double y, double height) {
    const double width = x_of(timeline.duration()) - kLeft;
    const Bins bins(timeline, static_cast<std::size_t>(std::max(1.0, std::round(width / kBin))));
    // The lanes of one SM divide it while several of them are busy.
    std::map<std::string_view, std::vector<double>> busy;
    for (const std::uint32_t lane : lanes) {
      std::vector<double>& of_place = busy.try_emplace(place_of(timeline.lanes[lane]), bins.count, 0.0).first->second;
      for (const std::size_t index : leaves[lane])
        bins.cover(timeline.spans[index], [&](std::size_t i, double part) { of_place[i] += part; });
    }
    std::array<std::vector<double>, kSpanKinds> shares;
    for (const std::uint32_t lane : lanes) {
      const std::vector<double>& of_place = busy.at(place_of(timeline.lanes[lane]));
      for (const std::size_t index : leaves[lane]) {
        const Span& span = timeline.spans[index];
        auto& share = shares[static_cast<std::size_t>(span.kind)];
        if (share.empty()) share.resize(bins.count, 0.0);
        bins.cover(span, [&](std::size_t i, double part) {
          share[i] += part / std::max(1.0, of_place[i]) / static_cast<double>(busy.size());
        });
      }
    }
    std::vector<double> floor(bins.count, y + height);
    for (const SpanKind kind : kPile) {
      const auto& share = shares[static_cast<std::size_t>(kind)];
      if (share.empty()) continue;
      std::vector<double> top(bins.count);
      for (std::size_t i = 0; i < top.size(); ++i) top[i] = std::max(y, floor[i] - height * share[i]);
      area(floor, top, kind, width / static_cast<double>(bins.count));
      floor = top;
    }
  }

  static double tenth(double value) { return std::round(value * 10) / 10; }

  void area(const std::vector<double>& floor, const std::vector<double>& top, SpanKind kind, double step) {
    std::string path;
    for (std::size_t i = 0; i < top.size();) {
      const double y0 = tenth(floor[i]);
      const double y1 = tenth(top[i]);
      std::size_t end = i + 1;
      while (end < top.size() && tenth(floor[end]) == y0 && tenth(top[end]) == y1) ++end;
      if (y1 < y0) {
        path += fmt::format("M{:.4g} {:.4g}H{:.4g}V{:.4g}H{:.4g}z", kLeft + step * static_cast<double>(i), y0,
                            kLeft + step * static_cast<double>(end), y1, kLeft + step * static_cast<double>(i));
      }
      i = end;
    }
    fmt::print(out_, "<path fill=\"{}\" shape-rendering=\"crispEdges\" d=\"{}\"/>\n", colour(kind), path);
  }

  /// Draws the composition of the critical path as a strip of its own.
  void draw_path(const Timeline& timeline, const std::vector<PathStep>& path, double y) {
    text(24, y + 5.5, "", "critical path");
    rect(kLeft, y, x_of(timeline.duration()) - kLeft, kStrip, "var(--track)");
    for (const PathPart& part : path_parts(timeline, path)) {
      if (part.cause == PathCause::kIdle || part.cause == PathCause::kLatency) continue;
      const double x = x_of(part.begin - timeline.begin);
      rect(x, y, std::max(0.3, x_of(part.end - timeline.begin) - x), kStrip, colour(part.kind));
    }
  }

  void draw_axis(double y) {
    const double raw = static_cast<double>(longest_) / 8;
    const double power = std::pow(10.0, std::floor(std::log10(std::max(1.0, raw))));
    const double step = (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1) * power;
    for (int i = 0; i * step <= static_cast<double>(longest_); ++i) {
      const Time time = static_cast<Time>(i * step);
      rect(x_of(time) - 0.25, kTitle + kHeading - 6, 0.5, y - kTitle - kHeading, "var(--line)");
      text(x_of(time), y + 8, "mid", i == 0 ? "0" : short_time(time));
    }
  }

  void draw_legend() {
    std::array<bool, kSpanKinds> used{};
    for (const Timeline& timeline : report_.timelines) {
      for (const auto& lane : leaves_by_lane(timeline)) {
        for (const std::size_t index : lane) used[static_cast<std::size_t>(timeline.spans[index].kind)] = true;
      }
    }
    double x = kLeft;
    for (const SpanKind kind : kPile) {
      if (!used[static_cast<std::size_t>(kind)]) continue;
      rect(x, 30, 10, 10, colour(kind));
      text(x + 14, 39, "", name(kind));
      x += 26 + 6.5 * static_cast<double>(name(kind).size());
    }
    rect(x, 30, 10, 10, "var(--track)");
    text(x + 14, 39, "", "idle");
  }

  const Report& report_;
  std::ostream& out_;
  Time longest_ = 1;
  std::vector<Shown> shown_;
};

}  // namespace

void write_svg(const Report& report, std::ostream& out) { Picture(report, out).draw(); }

void write_svg(const Report& report, const std::string& path) {
  write_file(path, [&](std::ostream& out) { write_svg(report, out); });
}

}  // namespace tandem::trace
