#pragma once
/// Timelines of kernels: the lanes of every PE, their spans, the arrows from causes to the waits that they ended, and
/// files that show them.
///
///   Simulation simulation(load_machine("h200x4"), 4, {.record = true});
///   simulation.run(program);
///   trace::Report report{.title = "my kernel", .timelines = {simulation.timeline()}};
///   trace::write_report(report, "report.html");                      // a page to explore
///   trace::write_svg(report, "picture.svg");                         // a picture for documents
///   trace::write_chrome_trace(simulation.timeline(), "trace.json");  // for ui.perfetto.dev
///
/// CudaThreads::timeline() and CudaProcess::timeline() give the same of GPUs (tandem/advanced/profile.h). Programs
/// may also add lanes, spans and arrows of their own. Labels are interned: keep the number that `intern` returned.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/range.h"

namespace tandem::trace {

/// Simulated (or measured) time in integer picoseconds.
using Time = std::int64_t;

/// Picoseconds of a nanosecond.
inline constexpr Time kNanosecond = 1'000;
/// Picoseconds of a microsecond.
inline constexpr Time kMicrosecond = 1'000'000;

/// Kind of a row. Within a PE the writers show lanes in this order, then in the order in which they were
/// added.
enum class LaneKind : std::uint8_t { kHost, kStream, kSm, kCopyEngine, kLinkOut, kLinkIn, kNicOut, kNicIn };
/// The number of kinds of lanes.
inline constexpr int kLaneKinds = 8;

/// Kind of work or waiting. `kKernel` is a container: the life of a block or role, whose operations are spans within
/// it.
enum class SpanKind : std::uint8_t {
  kKernel,
  kCompute,
  kLoad,
  kStore,
  kPut,
  kGet,
  kSignal,
  kWait,
  kCopy,
  kTransfer,
  kLaunch,
};
/// The number of kinds of spans.
inline constexpr int kSpanKinds = 11;

/// Singular name as people read it: "copy engine", "link out"; "compute", "wait".
std::string_view name(LaneKind kind);
/// Returns the singular name, as for lanes.
std::string_view name(SpanKind kind);

/// One row: a unit of one PE that does one thing at a time. It is an SM or a role on it, a copy engine, or one
/// direction of a link.
struct Lane {
  int pe = 0;                     ///< the PE to which it belongs
  LaneKind kind = LaneKind::kSm;  ///< the kind of row
  /// "sm 17", "block 3 / producer", "copy engine 0", "link out". It is unique within its PE.
  std::string name;
};

/// The number of no lane.
inline constexpr std::uint32_t kNoLane = ~std::uint32_t{0};

/// [begin, end) of a lane's time. Spans of one lane may nest; otherwise they should not overlap. `begin == end` is
/// allowed.
struct Span {
  std::uint32_t lane = 0;              ///< from Timeline::add_lane
  SpanKind kind = SpanKind::kCompute;  ///< the kind of work
  std::uint32_t label = 0;             ///< From Timeline::intern.
  Time begin = 0;                      ///< start of the work
  Time end = 0;                        ///< end of the work
  Size bytes = 0;                      ///< Payload that was moved; 0 if none was.
  /// The lane that requested a transfer on a link or NIC, and the time of the request. From `asked` to `begin` it was
  /// in a queue.
  std::uint32_t by = kNoLane;
  Time asked = 0;  ///< when the transfer was asked for
};

/// A cause and its effect: an event at `from` released a wait that lasted until `to`.
///
/// Draw one from the end of a put, signal or transfer to the end of the wait that it released. Draw one from a launch
/// to the begin of the launched work. `from <= to`.
struct Arrow {
  std::uint32_t from_lane = 0;  ///< the lane of the cause
  std::uint32_t to_lane = 0;    ///< the lane of the wait
  std::uint32_t label = 0;      ///< From Timeline::intern.
  Time from = 0;                ///< when the cause ended
  Time to = 0;                  ///< when the wait ended
};

/// The lanes, spans and arrows of one run.
class Timeline {
 public:
  std::string title;    ///< The name of the run: "overlapped", "sequential".
  std::string machine;  ///< Name of the machine model, or of the GPUs.
  /// Whether a machine model predicted the times; otherwise they were measured on GPUs. All outputs state which.
  bool predicted = false;
  int pes = 0;                ///< number of PEs
  int pes_per_node = 0;       ///< 0: all are on one node.
  Time begin = 0;             ///< start of the run
  Time end = 0;               ///< end of the run
  std::vector<Lane> lanes;    ///< by number
  std::vector<Span> spans;    ///< In any order.
  std::vector<Arrow> arrows;  ///< In any order.

  /// Adds a lane and returns its number, for Span::lane and Arrow.
  std::uint32_t add_lane(int pe, LaneKind kind, std::string lane_name);

  /// Returns the number of a label. Equal texts get equal numbers; 0 is the empty label.
  std::uint32_t intern(std::string_view text);
  /// Returns the text of a label.
  const std::string& label(std::uint32_t number) const { return labels_[number]; }
  /// Returns all labels, by number.
  const std::vector<std::string>& labels() const { return labels_; }

  /// Adds a span.
  void add(const Span& span) { spans.push_back(span); }
  /// Adds an arrow.
  void add(const Arrow& arrow) { arrows.push_back(arrow); }

  /// Returns the time from begin to end.
  Time duration() const { return end - begin; }

  /// Returns the same lanes and labels without spans and arrows.
  Timeline without_events() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> labels_{std::string{}};
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_{
      {std::string{}, 0}};  // looked up, never iterated
};

/// Text above the timelines, for example a finding of the checker.
struct Remark {
  /// A time on a lane: a link of the page, which shows it.
  struct Place {
    std::string text = {};     ///< the text of the link
    std::size_t timeline = 0;  ///< Index into Report::timelines.
    std::uint32_t lane = 0;    ///< of that timeline
    Time at = 0;               ///< where the page shows it
  };
  std::string title = {};  ///< the heading
  std::string text = {};   ///< Line breaks are kept.
  /// {"replay", "tandem check ..."}
  std::vector<std::pair<std::string, std::string>> facts = {};
  std::vector<Place> places = {};  ///< links to times on lanes
};

/// The contents of a page or picture.
struct Report {
  std::string title = {};  ///< the heading
  /// Shown above the timelines in this order: {"overlapped", "482 us"}.
  std::vector<std::pair<std::string, std::string>> summary = {};
  /// Drawn under each other on one time scale that begins at each one's `begin`.
  std::vector<Timeline> timelines = {};
  std::vector<Remark> remarks = {};  ///< shown above the timelines
};

/// Writes one HTML file that needs no network. It shows lanes grouped by PE, with zoom, pan, hover, arrows from cause
/// to wait, idle time, and the critical path. The file takes about 15 bytes for a span and 25 for an arrow.
///
/// Beyond half a million spans it holds as many PEs as fit, and the page says so. PEs of the critical path come
/// first, then the last to end. Above them each node is one row of its SMs, links and NICs.
///
/// The page sets `data-rendered` of its body to the number of lanes that it drew, and `data-error` if its script
/// failed.
///
/// Files are complete or absent. Throws InvalidArgument if the file cannot be made and RuntimeFailure if writing fails
/// (disk full). After an error `path` is unchanged.
void write_report(const Report& report, const std::string& path);
/// Writes the page to a stream.
void write_report(const Report& report, std::ostream& out);

/// Writes a picture of about 1000 x 400 points for documents, in light and dark. It shows four PEs of each timeline:
/// the activity of their SMs (the share of SMs over time), copy engines and links.
///
/// Throws the errors of write_report.
void write_svg(const Report& report, const std::string& path);
/// Writes the picture to a stream.
void write_svg(const Report& report, std::ostream& out);

/// Writes the timeline in the JSON object format of the "Trace Event Format" (Google, 2016). Each PE is a process and
/// each lane a thread. Spans are complete events ("X"), arrows are flow events ("s", "f"). Times are microseconds since
/// the timeline's begin with six decimals, so that no picosecond is lost.
///
/// Beyond half a million spans only the PEs of write_report are written, and the processes' labels say so. Events are
/// in order of time. The same timeline gives the same bytes.
///
/// Throws the errors of write_report.
void write_chrome_trace(const Timeline& timeline, const std::string& path);
/// Writes the trace to a stream.
void write_chrome_trace(const Timeline& timeline, std::ostream& out);

}  // namespace tandem::trace
