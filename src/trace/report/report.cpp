#include "tandem/timeline.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <tuple>

#include "trace/report/report_page.h"
#include "trace/timeline/analysis.h"
#include "trace/timeline/chosen_pes.h"
#include "trace/timeline/colours.h"
#include "trace/timeline/output_file.h"
#include "trace/timeline/overview.h"
#include "trace/timeline/path_parts.h"
#include "trace/timeline/text.h"

namespace tandem::trace {
namespace {

/// Puts commas between the elements of a JSON array.
class Comma {
 public:
  const char* operator()() {
    const char* text = first_ ? "" : ",";
    first_ = false;
    return text;
  }

 private:
  bool first_ = true;
};

/// Spans share few combinations of kind, label and size; the page gets each combination once.
class Styles {
 public:
  std::size_t number(const Span& span) {
    const auto key = std::tuple(span.kind, span.label, span.bytes);
    const auto [place, fresh] = numbers_.try_emplace(key, styles_.size());
    if (fresh) styles_.push_back(key);
    return place->second;
  }

  /// Format: [[kind, label, bytes], ...]
  void write(std::ostream& out) const {
    Comma comma;
    out << '[';
    for (const auto& [kind, label, bytes] : styles_) {
      out << comma() << '[' << static_cast<int>(kind) << ',' << label << ',' << bytes << ']';
    }
    out << ']';
  }

 private:
  using Key = std::tuple<SpanKind, std::uint32_t, Size>;
  std::map<Key, std::size_t> numbers_;
  std::vector<Key> styles_;
};

/// Format: [style, begin - previous end, length, ...], which are three small numbers for each span.
void write_spans(const Timeline& timeline, const std::vector<std::size_t>& spans, Styles& styles, std::ostream& out) {
  Comma comma;
  Time previous = timeline.begin;
  out << '[';
  for (const std::size_t index : spans) {
    const Span& span = timeline.spans[index];
    out << comma() << styles.number(span) << ',' << span.begin - previous << ',' << span.end - span.begin;
    previous = span.end;
  }
  out << ']';
}

/// Spans with contents by lane, sorted by begin, longer ones first.
std::vector<std::vector<std::size_t>> containers_by_lane(const Timeline& timeline,
                                                         const std::vector<std::vector<std::size_t>>& leaves) {
  std::vector<bool> leaf(timeline.spans.size(), false);
  for (const auto& lane : leaves) {
    for (const std::size_t index : lane) leaf[index] = true;
  }
  std::vector<std::vector<std::size_t>> lanes(timeline.lanes.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    if (!leaf[i]) lanes[timeline.spans[i].lane].push_back(i);
  }
  for (auto& lane : lanes) {
    std::sort(lane.begin(), lane.end(), [&](std::size_t a, std::size_t b) {
      const Span &x = timeline.spans[a], &y = timeline.spans[b];
      return std::tuple(x.begin, -x.end, a) < std::tuple(y.begin, -y.end, b);
    });
  }
  return lanes;
}

void write_lanes(const Timeline& timeline, std::ostream& out) {
  const std::vector<LaneUse> uses = lane_use(timeline);
  Comma comma;
  out << "\"lanes\":[";
  for (std::size_t i = 0; i < timeline.lanes.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    out << comma() << '[' << lane.pe << ',' << static_cast<int>(lane.kind) << ',' << json_string(lane.name) << ','
        << uses[i].busy << ',' << uses[i].waiting << ',' << uses[i].bytes << ']';
  }
  out << ']';
}

/// Format: [lane, index among the lane's leaves, arrow to this step or -1, ...]
void write_path(const Timeline& timeline, const std::vector<PathStep>& path,
                const std::vector<std::vector<std::size_t>>& leaves, std::ostream& out) {
  std::vector<std::size_t> place(timeline.spans.size(), 0);
  for (const auto& lane : leaves) {
    for (std::size_t i = 0; i < lane.size(); ++i) place[lane[i]] = i;
  }
  Comma comma;
  out << "\"path\":[";
  for (const PathStep& step : path) {
    out << comma() << timeline.spans[step.span].lane << ',' << place[step.span] << ',' << step.arrow;
  }
  out << ']';
}

/// Format: [from lane, to lane, label, from, to - from, ...]
void write_arrows(const Timeline& timeline, std::ostream& out) {
  Comma comma;
  out << "\"arrows\":[";
  for (const Arrow& arrow : timeline.arrows) {
    out << comma() << arrow.from_lane << ',' << arrow.to_lane << ',' << arrow.label << ','
        << arrow.from - timeline.begin << ',' << arrow.to - arrow.from;
  }
  out << ']';
}

/// Format: [[name, kind, time], ...]
void write_shares(const std::vector<PathShare>& shares, std::ostream& out) {
  Comma comma;
  out << "\"shares\":[";
  for (const PathShare& share : shares) {
    out << comma() << '[' << json_string(share.name) << ',' << static_cast<int>(share.kind) << ',' << share.time << ']';
  }
  out << ']';
}

/// Writes a JSON object without its closing brace.
void write_timeline(const Timeline& timeline, const std::vector<PathStep>& path, const std::vector<PathShare>& shares,
                    int shown_pes, std::ostream& out) {
  const auto leaves = leaves_by_lane(timeline);
  const auto containers = containers_by_lane(timeline, leaves);
  out << "{\"title\":" << json_string(timeline.title) << ",\"origin\":" << json_string(origin(timeline))
      << ",\"duration\":" << timeline.duration() << ",\"pes\":" << timeline.pes << ",\"shown\":" << shown_pes << ",\n";
  write_lanes(timeline, out);
  Styles styles;
  Comma comma;
  out << ",\n\"spans\":[";
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    out << comma() << '[';
    write_spans(timeline, leaves[lane], styles, out);
    out << ',';
    write_spans(timeline, containers[lane], styles, out);
    out << ']';
  }
  out << "],\n\"styles\":";
  styles.write(out);
  Comma label_comma;
  out << ",\n\"labels\":[";
  for (const std::string& label : timeline.labels()) out << label_comma() << json_string(label);
  out << "],\n";
  write_arrows(timeline, out);
  out << ",\n";
  write_path(timeline, path, leaves, out);
  out << ",\n";
  write_shares(shares, out);
}

/// Format: [bins, PEs of a node, [[name, nodes, least, median, most, [percent, ...]], ...]]
void write_overview(const Overview& overview, std::ostream& out) {
  Comma comma;
  out << '[' << overview.bins << ',' << overview.pes_per_node << ",[";
  for (const Overview::Part& part : overview.parts) {
    out << comma() << '[' << json_string(part.name) << ',' << part.nodes << ',' << part.least << ',' << part.median
        << ',' << part.most << ",[";
    Comma value_comma;
    for (const std::uint8_t percent : part.percent) out << value_comma() << static_cast<int>(percent);
    out << "]]";
  }
  out << "]]";
}

/// Adds an overview of the nodes if there are several.
void write_timeline_that_fits(const Timeline& timeline, std::size_t max_spans, std::ostream& out) {
  constexpr int kBins = 400;
  const auto path = critical_path(timeline);
  const auto shares = path_shares(timeline, path_parts(timeline, path));
  const std::vector<int> pes = chosen_pes(timeline, path, max_spans);
  const std::size_t all = chosen_pes(timeline, path, timeline.spans.size()).size();
  if (pes.size() == all) {
    write_timeline(timeline, path, shares, std::max(static_cast<int>(all), timeline.pes), out);
  } else {
    const PartOfPes part = part_of(timeline, path, pes);
    write_timeline(part.timeline, part.path, shares, static_cast<int>(pes.size()), out);
  }
  const bool several_nodes = timeline.pes_per_node > 0 && timeline.pes > timeline.pes_per_node;
  out << ",\n\"overview\":";
  if (several_nodes || pes.size() < all)
    write_overview(overview_of(timeline, kBins), out);
  else
    out << "null";
  out << '}';
}

void write_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, std::ostream& out) {
  Comma comma;
  out << '[';
  for (const auto& [key, value] : pairs) {
    out << comma() << '[' << json_string(key) << ',' << json_string(value) << ']';
  }
  out << ']';
}

/// Format: [[title, text, facts, [[text, timeline, lane, time since its begin], ...]], ...]
void write_remarks(const Report& report, std::ostream& out) {
  Comma comma;
  out << "\"remarks\":[";
  for (const Remark& remark : report.remarks) {
    out << comma() << '[' << json_string(remark.title) << ',' << json_string(remark.text) << ',';
    write_pairs(remark.facts, out);
    out << ",[";
    Comma place_comma;
    for (const Remark::Place& place : remark.places) {
      const Timeline& timeline = report.timelines.at(place.timeline);
      out << place_comma() << '[' << json_string(place.text) << ',' << place.timeline << ',' << place.lane << ','
          << place.at - timeline.begin << ']';
    }
    out << "]]";
  }
  out << ']';
}

template <class Kind>
void write_kinds(const char* key, int count, std::ostream& out) {
  Comma comma;
  out << '"' << key << "\":[";
  for (int i = 0; i < count; ++i) out << comma() << json_string(name(static_cast<Kind>(i)));
  out << ']';
}

void write_data(const Report& report, std::ostream& out) {
  out << "{\"title\":" << json_string(report.title) << ",\"summary\":";
  write_pairs(report.summary, out);
  out << ',';
  write_remarks(report, out);
  out << ',';
  write_kinds<SpanKind>("kinds", kSpanKinds, out);
  out << ',';
  write_kinds<LaneKind>("laneKinds", kLaneKinds, out);
  out << ",\n\"timelines\":[";
  Comma timeline_comma;
  for (const Timeline& timeline : report.timelines) {
    out << timeline_comma();
    write_timeline_that_fits(timeline, kMaxSpans / report.timelines.size(), out);
  }
  out << "]}";
}

}  // namespace

void write_report(const Report& report, std::ostream& out) {
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      << "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" << xml_text(report.title)
      << "</title>\n<style>\n:root { " << kind_colours(false) << "}\n:root.dark { " << kind_colours(true) << '}'
      << report_file("style") << "</style>\n</head>\n<body>\n"
      << report_file("page") << "<script type=\"application/json\" id=\"data\">";
  write_data(report, out);
  out << "</script>\n<script>\n'use strict';\n";
  for (const char* script : {"model", "layout", "paint", "marks", "find", "main"}) out << report_file(script);
  out << "</script>\n</body>\n</html>\n";
}

void write_report(const Report& report, const std::string& path) {
  write_file(path, [&](std::ostream& out) { write_report(report, out); });
}

}  // namespace tandem::trace
