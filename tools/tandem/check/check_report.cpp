#include "tools/tandem/check/check_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/schedules.h"
#include "tandem/timeline.h"

namespace tandem::cli {
namespace {

/// Describes a finding, and draws its sites on lanes of their own.
trace::Remark marked(trace::Timeline& timeline, const Finding& finding, std::size_t number) {
  trace::Remark remark{.title = fmt::format("finding {}: {}", number, finding.kind), .text = finding.missing};
  for (const CheckSite& site : finding.sites) {
    const auto at = static_cast<trace::Time>(site.time_us * 1e6);
    const std::string label = fmt::format("{} at {}:{} by {}", site.operation, site.file, site.line, site.who);
    const auto lane =
        timeline.add_lane(site.pe, trace::LaneKind::kHost,
                          fmt::format("finding {}, {} {}", number, site.operation, remark.places.size() + 1));
    timeline.add(trace::Span{lane, trace::SpanKind::kSignal, timeline.intern(label), at, at + trace::kMicrosecond, 0});
    timeline.end = std::max(timeline.end, at + trace::kMicrosecond);
    remark.places.push_back({fmt::format("{}, {:.2f} us", label, site.time_us), 0, lane, at});
  }
  if (remark.places.size() == 2 && remark.places[0].at <= remark.places[1].at)
    timeline.add(trace::Arrow{remark.places[0].lane, remark.places[1].lane, timeline.intern("no order"),
                              remark.places[0].at, remark.places[1].at});
  if (!finding.buffer.empty()) remark.facts.emplace_back("buffer", finding.buffer);
  if (!finding.signal.empty()) remark.facts.emplace_back("signal", finding.signal);
  return remark;
}

}  // namespace

void write_check_report(const std::string& path, const CheckCase& one, const CheckOptions& options, std::uint64_t seed,
                        sim::Faults* faults) {
  const std::unique_ptr<CheckProgram> program = one.make();
  const auto points = checker::count_points([&](World& world) { program->run(world); }, options);
  const auto schedule = checker::make_schedule(options, seed, points);
  trace::Timeline timeline;
  const auto outcome = run_case_once(*program, options, seed, *schedule, faults, &timeline);
  timeline.title = one.name();
  trace::Report report;
  report.title = "tandem check " + one.name();
  const std::string replay =
      fmt::format("{} --strategy {} --seed {} --schedules 1", options.replay, name(options.strategy), seed);
  for (const Finding& finding : outcome.findings) {
    report.remarks.push_back(marked(timeline, finding, report.remarks.size() + 1));
    report.remarks.back().facts.emplace_back("replay", replay);
  }
  report.timelines.push_back(std::move(timeline));
  trace::write_report(report, path);
}

}  // namespace tandem::cli
