#include "tools/tandem/run/pictures.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "tandem/error.h"
#include "tandem/timeline.h"
#include "tools/tandem/options/json_file.h"
#include "trace/timeline/cut.h"

namespace tandem::cli {
namespace {

trace::Time picoseconds(double us) { return std::llround(us * 1e6); }

/// Returns "232.0 of 393 GB/s (link)". No algorithm is faster than the links of a PE, or between nodes than the NICs of
/// a node.
std::string bandwidth_text(const Machine& machine, const Result& r) {
  constexpr double kAllBlocks = 1e9;
  const bool mesh = machine.link.fabric == Fabric::kFullMesh;
  const double link = machine.link.store_gbps.at(kAllBlocks) * (mesh ? std::min(r.pes, machine.pes_per_node) - 1 : 1);
  const double nics = machine.nic.count_per_node * machine.nic.gbps;
  const bool by_nics = r.pes > machine.pes_per_node && nics > 0 && nics < link;
  return fmt::format("{:.1f} of {:.0f} GB/s ({})", *r.bus_bandwidth(), by_nics ? nics : link,
                     by_nics ? "NICs of a node" : "link");
}

/// Returns "412 of 730 (GEMM alone)": TFLOP/s of a PE, and the machine's sustained GEMM rate for such a size.
std::string tflops_text(const Machine& machine, const Result& r) {
  const double tflop = r.gemm->tflop() / r.pes;
  return fmt::format("{:.0f} of {:.0f} (GEMM alone)", tflop / r.time_us * 1e6,
                     gemm_sustained_tflops(machine, tflop, r.gemm->element_bytes));
}

std::vector<std::pair<std::string, std::string>> summary_of(const Result& r, const std::optional<Machine>& machine) {
  const char* const time = r.predicted() ? "predicted time" : "measured time";
  std::vector<std::pair<std::string, std::string>> summary{{"algorithm", r.algorithm},
                                                           {time, fmt::format("{:.2f} us", r.time_us)}};
  if (r.bus_bandwidth())
    summary.emplace_back("bus bandwidth", machine && r.pes > 1 ? bandwidth_text(*machine, r)
                                                               : fmt::format("{:.1f} GB/s", *r.bus_bandwidth()));
  if (machine && r.gemm && r.time_us > 0 && !r.algorithm.starts_with("communication"))
    summary.emplace_back("TFLOP/s a PE", tflops_text(*machine, r));
  if (r.sequential_us) summary.emplace_back("sequential", fmt::format("{:.2f} us", *r.sequential_us));
  if (r.ideal_us) summary.emplace_back("ideal", fmt::format("{:.2f} us", *r.ideal_us));
  if (const auto overlap = r.overlap_percent()) summary.emplace_back("overlap", fmt::format("{:.1f} %", *overlap));
  if (r.check) summary.emplace_back("wrong elements", fmt::format("{} of {}", r.check->wrong, r.check->checked));
  if (r.backend == "sim") summary.emplace_back("machine model", r.machine);
  summary.emplace_back("seed", fmt::format("{}{}", r.seed, r.phantom ? ", phantom" : ""));
  return summary;
}

}  // namespace

Pictures::Pictures(const RunOptions& options) : trace_(options.trace), report_(options.report), svg_(options.svg) {
  std::set<std::string> paths;
  for (const auto& [option, path] : {std::pair("--trace", trace_), {"--report", report_}, {"--svg", svg_}}) {
    if (path.empty()) continue;
    if (path == "-") throw InvalidArgument(fmt::format("{}: '-' given, only --json writes to standard output", option));
    if (!paths.insert(path).second)
      throw InvalidArgument(fmt::format("{}: '{}' given, which another option has, too", option, path));
    check_output(option, path);
  }
}

void Pictures::add(const std::string& title, const trace::Timeline& timeline, const CallWindow& window) {
  // Streams are idle at both ends of the window, so only host programs cross them.
  add(title, trace::cut(timeline, picoseconds(window.begin_us), picoseconds(window.end_us)));
}

void Pictures::add(const std::string& title, trace::Timeline timeline) {
  timelines_.push_back(std::move(timeline));
  timelines_.back().title = title;
}

void Pictures::compare_with(const Machine& machine) { machine_ = machine; }

std::vector<std::string> Pictures::write(const Result& r) {
  std::vector<std::string> written;
  if (timelines_.empty()) return written;
  const std::string origin = r.predicted() ? ", predicted" : ", measured";
  if (!trace_.empty()) {
    const std::string title = timelines_.front().title;
    timelines_.front().title += origin;
    trace::write_chrome_trace(timelines_.front(), trace_);
    timelines_.front().title = title;  // a report has it once, at the top
    written.push_back(trace_);
  }
  if (!wants_report()) return written;
  trace::Report report;
  report.title =
      fmt::format("{} {} {}, {} PEs of {}{}", r.op, r.shape.value_or(fmt::format("{} bytes", r.bytes.value_or(0))),
                  r.dtype, r.pes, r.machine, origin);
  report.summary = summary_of(r, machine_);
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
