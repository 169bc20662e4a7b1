#include "cli/pictures.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "tandem/error.h"
#include "trace/chrome_trace.h"
#include "trace/cut.h"
#include "trace/output_file.h"

namespace tandem::cli {
namespace {

trace::Time picoseconds(double us) { return std::llround(us * 1e6); }

std::vector<std::pair<std::string, std::string>> summary_of(const Result& r) {
  std::vector<std::pair<std::string, std::string>> summary{
      {"algorithm", r.algorithm},
      {r.predicted() ? "predicted time" : "measured time", fmt::format("{:.2f} us", r.time_us)}};
  if (r.sequential_us) summary.emplace_back("sequential", fmt::format("{:.2f} us", *r.sequential_us));
  if (r.ideal_us) summary.emplace_back("ideal", fmt::format("{:.2f} us", *r.ideal_us));
  if (const auto overlap = r.overlap_percent()) summary.emplace_back("overlap", fmt::format("{:.1f} %", *overlap));
  if (r.check) summary.emplace_back("wrong elements", fmt::format("{} of {}", r.check->wrong, r.check->checked));
  summary.emplace_back("seed", fmt::format("{}{}", r.seed, r.phantom ? ", phantom" : ""));
  return summary;
}

}  // namespace

Pictures::Pictures(const Arguments& arguments)
    : trace_(arguments.trace), report_(arguments.report), svg_(arguments.svg) {
  std::set<std::string> paths;
  for (const std::string& path : {trace_, report_, svg_}) {
    if (path.empty()) continue;
    if (path == "-")
      throw InvalidArgument("--trace, --report, --svg: '-' given, only --json writes to standard output");
    if (!paths.insert(path).second) throw InvalidArgument(fmt::format("'{}' was given for two files", path));
    trace::check_writable(path);
  }
}

void Pictures::add(const std::string& title, const trace::Timeline& timeline, const CallWindow& window) {
  // Streams are idle at both ends, so nothing but host programs crosses them.
  add(title, trace::cut(timeline, picoseconds(window.begin_us), picoseconds(window.end_us)));
}

void Pictures::add(const std::string& title, trace::Timeline timeline) {
  timelines_.push_back(std::move(timeline));
  timelines_.back().title = title;
}

std::vector<std::string> Pictures::write(const Result& r) {
  std::vector<std::string> written;
  if (timelines_.empty()) return written;
  const std::string origin = r.predicted() ? ", predicted" : ", measured";
  if (!trace_.empty()) {
    const std::string title = timelines_.front().title;
    timelines_.front().title += origin;
    trace::write_chrome_trace(timelines_.front(), trace_);
    timelines_.front().title = title;  // a report says it once, at the top
    written.push_back(trace_);
  }
  if (!wants_report()) return written;
  trace::Report report;
  report.title =
      fmt::format("{} {} {}, {} PEs of {}{}", r.op, r.shape.value_or(fmt::format("{} bytes", r.bytes.value_or(0))),
                  r.dtype, r.pes, r.machine, origin);
  report.summary = summary_of(r);
  report.timelines = std::move(timelines_);
  if (!report_.empty()) {
    trace::write_report(report, report_);
    written.push_back(report_);
  }
  if (!svg_.empty()) {
    trace::write_svg(report, svg_);
    written.push_back(svg_);
  }
  return written;
}

}  // namespace tandem::cli
