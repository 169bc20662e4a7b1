#include "tandem/check.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "check/run_once.h"
#include "check/schedules.h"
#include "sim/reuse.h"
#include "tandem/error.h"

namespace tandem {

namespace {

constexpr std::array<const char*, 4> kStrategies{"random", "pct", "delay", "dfs"};
constexpr int kMostPes = 32;

CheckOptions complete(CheckOptions options) {
  if (options.pes < 1 || options.pes > kMostPes)
    throw InvalidArgument(fmt::format("pes: {} given, a check takes 1 to {}", options.pes, kMostPes));
  if (options.schedules < 1)
    throw InvalidArgument(fmt::format("schedules: {} given, allowed is 1 or more", options.schedules));
  if (options.strategy < Strategy::kRandom || options.strategy > Strategy::kDfs)
    throw InvalidArgument(
        fmt::format("strategy: {} given, allowed are the values of Strategy", static_cast<int>(options.strategy)));
  if (options.tile_bytes < 1)
    throw InvalidArgument(fmt::format("tile_bytes: {} given, allowed is 1 or more", options.tile_bytes));
  if (options.machine.name.empty()) options.machine = load_machine(options.pes <= 4 ? "h200x4" : "h200x8");
  return options;
}

/// Adds what is new, with the command that shows it again.
void add(CheckResult& result, std::set<std::string>& seen, const std::vector<Finding>& findings, std::uint64_t seed,
         const CheckOptions& options) {
  for (Finding finding : findings) {
    std::string key = finding.kind;
    for (const CheckSite& site : finding.sites) key += fmt::format("|{}:{}:{}", site.file, site.line, site.operation);
    if (!seen.insert(key).second) continue;
    finding.seed = seed;
    finding.replay = fmt::format("{}{}--strategy {} --seed {} --schedules 1", options.replay,
                                 options.replay.empty() ? "" : " ", name(options.strategy), seed);
    result.findings.push_back(std::move(finding));
  }
}

Finding nondeterminism() {
  Finding finding;
  finding.kind = "nondeterminism";
  finding.missing =
      "the same seed gave two different runs: the program depends on an address, the time, or memory that it never set";
  return finding;
}

}  // namespace

const char* name(Strategy strategy) { return kStrategies[static_cast<std::size_t>(strategy)]; }

Strategy parse_strategy(const std::string& text) {
  for (std::size_t i = 0; i < kStrategies.size(); ++i)
    if (text == kStrategies[i]) return static_cast<Strategy>(i);
  throw InvalidArgument(fmt::format("strategy: '{}' given, allowed is {}", text, fmt::join(kStrategies, ", ")));
}

CheckResult check(const std::function<void(World&)>& program, const CheckOptions& options) {
  return checker::check_broken(program, options, nullptr);
}

CheckResult checker::check_broken(const std::function<void(World&)>& program, const CheckOptions& options,
                                  sim::Faults* faults) {
  if (!program) throw InvalidArgument("program: none given");
  const CheckOptions all = complete(options);
  CheckResult result;
  std::set<std::string> seen;
  const sim::Reuse reuse;
  const std::uint64_t points = checker::count_points(program, all);
  for (int i = 0; i < all.schedules; ++i) {
    const std::uint64_t seed = all.seed + static_cast<std::uint64_t>(i);
    if (all.strategy == Strategy::kDfs && seed > checker::dfs_schedules(points)) {
      result.exhausted = true;
      break;
    }
    const auto run = [&] {
      const auto schedule = checker::make_schedule(all.strategy, seed, all.pes, points);
      return checker::run_once(program, all, seed, *schedule, faults);
    };
    const checker::Outcome outcome = run();
    ++result.schedules;
    add(result, seen, outcome.findings, seed, all);
    if (i == 0 && all.check_determinism && run().trace_hash != outcome.trace_hash)
      add(result, seen, {nondeterminism()}, seed, all);
    if (all.stop_at_first && !result.clean()) break;
  }
  return result;
}

std::string Finding::text() const {
  std::string text = kind;
  if (!buffer.empty()) text += ": " + buffer;
  if (!signal.empty()) text += ": " + signal;
  text += '\n';
  for (const CheckSite& site : sites)
    text += fmt::format("  {} at {}:{} by {}\n", site.operation, site.file, site.line, site.who);
  text += fmt::format("  missing: {}\n", missing);
  text += fmt::format("  replay: {}\n", replay);
  return text;
}

std::string CheckResult::text() const {
  if (clean()) return fmt::format("clean under {} schedule{}\n", schedules, schedules == 1 ? "" : "s");
  std::string text;
  for (const Finding& finding : findings) text += finding.text();
  return text;
}

}  // namespace tandem
