#include "tandem/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <tuple>
#include <vector>

#include "trace/timeline/analysis.h"
#include "trace/timeline/chosen_pes.h"
#include "trace/timeline/output_file.h"
#include "trace/timeline/text.h"

namespace tandem::trace {
namespace {

/// Puts a comma between events.
class Events {
 public:
  explicit Events(std::ostream& out) : out_(out) {}
  std::ostream& next() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
    return out_;
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

/// "predicted with the machine model h200x4; 12 of 1024 PEs"
std::string note_of(const Timeline& timeline) {
  std::set<int> pes;
  for (const Lane& lane : timeline.lanes) pes.insert(lane.pe);
  const bool all = static_cast<int>(pes.size()) >= timeline.pes;
  return origin(timeline) + (all ? "" : fmt::format("; {} of {} PEs", pes.size(), timeline.pes));
}

/// Both viewers sort threads by "thread_sort_index": kind first, then the order of recording.
void write_names(const Timeline& timeline, Events& events) {
  const std::string note = json_string(note_of(timeline));
  std::vector<bool> seen;
  for (std::size_t i = 0; i < timeline.lanes.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    const auto pe = static_cast<std::size_t>(lane.pe);
    if (pe >= seen.size()) seen.resize(pe + 1, false);
    if (!seen[pe]) {
      seen[pe] = true;
      events.next() << R"({"ph":"M","name":"process_name","pid":)" << pe << R"(,"args":{"name":"PE )" << pe << "\"}}";
      events.next() << R"({"ph":"M","name":"process_labels","pid":)" << pe << R"(,"args":{"labels":)" << note << "}}";
      events.next() << R"({"ph":"M","name":"process_sort_index","pid":)" << pe << R"(,"args":{"sort_index":)" << pe
                    << "}}";
    }
    const std::size_t order = static_cast<std::size_t>(lane.kind) * timeline.lanes.size() + i;
    events.next() << R"({"ph":"M","name":"thread_name","pid":)" << pe << R"(,"tid":)" << i << R"(,"args":{"name":)"
                  << json_string(lane.name) << "}}";
    events.next() << R"({"ph":"M","name":"thread_sort_index","pid":)" << pe << R"(,"tid":)" << i
                  << R"(,"args":{"sort_index":)" << order << "}}";
  }
}

/// Perfetto counts whole nanoseconds. A flow binds to the slice that is open at its time, which excludes the slice's
/// end. An arrow that starts or arrives at the end of a span is therefore drawn this much earlier.
constexpr Time kInside = kNanosecond;

Time inside(const Span& span) { return std::max(span.begin, span.end - kInside); }

struct FlowTimes {
  Time out;
  Time in;
};

FlowTimes flow_times(const Timeline& timeline, const std::vector<std::vector<std::size_t>>& leaves,
                     const Arrow& arrow) {
  FlowTimes times{arrow.from, arrow.to};
  if (const auto source = leaf_at(timeline, leaves[arrow.from_lane], arrow.from); source >= 0) {
    const Span& span = timeline.spans[static_cast<std::size_t>(source)];
    if (span.end == arrow.from) times.out = inside(span);
  }
  if (const auto target = leaf_at(timeline, leaves[arrow.to_lane], arrow.to); target >= 0) {
    const Span& span = timeline.spans[static_cast<std::size_t>(target)];
    if (span.kind == SpanKind::kWait && span.end == arrow.to) times.in = inside(span);
  }
  times.in = std::max(times.in, times.out);
  return times;
}

struct Event {
  enum class Type { kSpan, kFlowOut, kFlowIn };
  Time at;
  Time length;  ///< longer first, so that a container precedes its contents
  Type type;
  std::size_t index;
};

std::vector<Event> events_in_order(const Timeline& timeline) {
  std::vector<Event> events;
  events.reserve(timeline.spans.size() + 2 * timeline.arrows.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    events.push_back({span.begin, span.end - span.begin, Event::Type::kSpan, i});
  }
  const auto leaves = leaves_by_lane(timeline);
  for (std::size_t i = 0; i < timeline.arrows.size(); ++i) {
    const FlowTimes times = flow_times(timeline, leaves, timeline.arrows[i]);
    events.push_back({times.out, 0, Event::Type::kFlowOut, i});
    events.push_back({times.in, 0, Event::Type::kFlowIn, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.at, a.type, -a.length, a.index) < std::tuple(b.at, b.type, -b.length, b.index);
  });
  return events;
}

void write_span(const Timeline& timeline, const Span& span, std::ostream& out) {
  const std::string& label = timeline.label(span.label);
  out << R"({"ph":"X","name":)" << json_string(label.empty() ? std::string(name(span.kind)) : label) << R"(,"cat":")"
      << name(span.kind) << R"(","pid":)" << timeline.lanes[span.lane].pe << R"(,"tid":)" << span.lane << R"(,"ts":)"
      << microseconds(span.begin - timeline.begin) << R"(,"dur":)" << microseconds(span.end - span.begin);
  if (span.by != kNoLane) {
    out << R"(,"args":{"bytes":)" << span.bytes << R"(,"queued_us":)" << microseconds(span.begin - span.asked)
        << R"(,"by":)"
        << json_string(fmt::format("PE {}, {}", timeline.lanes[span.by].pe, timeline.lanes[span.by].name)) << '}';
  } else if (span.bytes != 0) {
    out << R"(,"args":{"bytes":)" << span.bytes << '}';
  }
  out << '}';
}

/// "bp":"e" binds the head of the arrow to the slice that encloses it, not to the next one.
void write_flow(const Timeline& timeline, const Event& event, std::ostream& out) {
  const Arrow& arrow = timeline.arrows[event.index];
  const bool head = event.type == Event::Type::kFlowIn;
  const std::uint32_t lane = head ? arrow.to_lane : arrow.from_lane;
  const std::string& label = timeline.label(arrow.label);
  out << R"({"ph":")" << (head ? 'f' : 's') << R"(","id":)" << event.index << R"(,"name":)"
      << json_string(label.empty() ? "signal" : label) << R"(,"cat":"flow","pid":)" << timeline.lanes[lane].pe
      << R"(,"tid":)" << lane << R"(,"ts":)" << microseconds(event.at - timeline.begin)
      << (head ? R"(,"bp":"e"})" : "}");
}

void write_events(const Timeline& timeline, std::ostream& out) {
  out << R"({"displayTimeUnit":"ns","otherData":{"title":)" << json_string(timeline.title) << R"(,"machine":)"
      << json_string(timeline.machine) << R"(,"times":)" << json_string(note_of(timeline)) << R"(},"traceEvents":[)";
  Events events(out);
  write_names(timeline, events);
  for (const Event& event : events_in_order(timeline)) {
    if (event.type == Event::Type::kSpan) {
      write_span(timeline, timeline.spans[event.index], events.next());
    } else {
      write_flow(timeline, event, events.next());
    }
  }
  out << "\n]}\n";
}

}  // namespace

void write_chrome_trace(const Timeline& timeline, std::ostream& out) {
  if (timeline.spans.size() <= kMaxSpans) return write_events(timeline, out);
  const auto path = critical_path(timeline);
  write_events(part_of(timeline, path, chosen_pes(timeline, path, kMaxSpans)).timeline, out);
}

void write_chrome_trace(const Timeline& timeline, const std::string& path) {
  write_file(path, [&](std::ostream& out) { write_chrome_trace(timeline, out); });
}

}  // namespace tandem::trace
