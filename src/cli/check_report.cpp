#include "cli/check_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/schedules.h"
#include "trace/report.h"

namespace tandem::cli {

void write_check_report(const std::string& path, const CheckCase& one, const CheckOptions& options, std::uint64_t seed,
                        sim::Faults* faults) {
  const std::unique_ptr<CheckProgram> program = one.make();
  const auto points = checker::count_points([&](World& world) { program->run(world); }, options);
  const auto schedule = checker::make_schedule(options.strategy, seed, one.pes, points);
  trace::Timeline timeline;
  const auto outcome = run_case_once(*program, options, seed, *schedule, faults, &timeline);
  timeline.title = one.name();
  trace::Report report;
  report.title = "tandem check " + one.name();
  const auto time = [](double us) { return static_cast<trace::Time>(us * 1e6); };
  int number = 0;
  for (const Finding& finding : outcome.findings) {
    report.summary.emplace_back(fmt::format("finding {}", ++number), finding.kind + ": " + finding.missing);
    std::vector<std::uint32_t> lanes;
    for (const CheckSite& site : finding.sites) {
      lanes.push_back(timeline.add_lane(site.pe, trace::LaneKind::kHost,
                                        fmt::format("finding {} site {}", number, lanes.size() + 1)));
      timeline.add(trace::Span{lanes.back(), trace::SpanKind::kWait, timeline.intern(site.text()), time(site.time_us),
                               time(site.time_us) + trace::kMicrosecond, 0});
      timeline.end = std::max(timeline.end, time(site.time_us) + trace::kMicrosecond);
    }
    if (lanes.size() == 2 && finding.sites[0].time_us <= finding.sites[1].time_us)
      timeline.add(trace::Arrow{lanes[0], lanes[1], timeline.intern("no order"), time(finding.sites[0].time_us),
                                time(finding.sites[1].time_us)});
  }
  report.timelines.push_back(std::move(timeline));
  trace::write_report(report, path);
}

}  // namespace tandem::cli
