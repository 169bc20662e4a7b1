#include "tandem/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>

#include "base/mapping_pool.h"
#include "check/run_once.h"
#include "check/schedules.h"
#include "tandem/error.h"

namespace tandem {

namespace {

constexpr std::array<const char*, 4> kStrategies{"random", "pct", "delay", "dfs"};
constexpr std::array<const char*, 4> kEnumerators{"kRandom", "kPct", "kDelay", "kDfs"};
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

/// Returns the command that shows a finding again; without one, the options of the check that differ.
std::string replay_of(const CheckOptions& options, std::uint64_t seed) {
  if (!options.replay.empty())
    return fmt::format("{} --strategy {} --seed {} --schedules 1", options.replay, name(options.strategy), seed);
  return fmt::format("CheckOptions{{.schedules = 1, .strategy = Strategy::{}, .seed = {}}}, all others as they were",
                     kEnumerators[static_cast<std::size_t>(options.strategy)], seed);
}

/// Adds new findings, each with its replay.
void add(CheckResult& result, std::set<std::string>& seen, const std::vector<Finding>& findings, std::uint64_t seed,
         const CheckOptions& options) {
  for (Finding finding : findings) {
    std::string key = finding.kind;
    for (const CheckSite& site : finding.sites) key += fmt::format("|{}:{}:{}", site.file, site.line, site.operation);
    if (!seen.insert(key).second) continue;
    finding.seed = seed;
    finding.replay = replay_of(options, seed);
    result.findings.push_back(std::move(finding));
  }
}

/// Whether the run used memory or ended in a way that leaves later results undefined.
bool is_astray(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.kind == "out_of_bounds" || finding.kind == "error"; });
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
  result.strategy = all.strategy;
  std::set<std::string> seen;
  const MappingPool pool;
  const std::uint64_t points = checker::count_points(program, all);
  for (int i = 0; i < all.schedules; ++i) {
    const std::uint64_t seed = all.seed + static_cast<std::uint64_t>(i);
    result.exhausted = all.strategy == Strategy::kDfs && seed > checker::dfs_schedules(points);
    if (result.exhausted) break;
    const auto run = [&] {
      const auto schedule = checker::make_schedule(all, seed, points);
      return checker::run_once(program, all, seed, *schedule, faults);
    };
    const checker::Outcome outcome = run();
    ++result.schedules;
    add(result, seen, outcome.findings, seed, all);
    if (i == 0 && all.check_determinism && !is_astray(outcome.findings) && run().trace_hash != outcome.trace_hash)
      add(result, seen, {nondeterminism()}, seed, all);
    result.exhausted = all.strategy == Strategy::kDfs && seed == checker::dfs_schedules(points);
    if (all.stop_at_first && !result.clean()) break;
  }
  return result;
}

std::string CheckSite::text() const {
  std::string text = fmt::format("{} at {}:{} by {}", operation, file, line, who);
  if (launch > 0) text += fmt::format(", launch {}", launch);
  if (occurrence > 0) text += fmt::format(", occurrence {}", occurrence);
  return text;
}

std::string Finding::text() const {
  std::string text = kind;
  if (!buffer.empty()) text += ": " + buffer;
  if (!signal.empty()) text += ": " + signal;
  text += '\n';
  for (const CheckSite& site : sites) text += fmt::format("  {}\n", site.text());
  // A race lacks an order between its sites. Other findings have a text that is complete by itself.
  text += fmt::format("  {}{}\n", sites.empty() ? "" : "missing: ", missing);
  text += fmt::format("  replay: {}\n", replay);
  return text;
}

std::string CheckResult::text() const {
  std::string text;
  for (const Finding& finding : findings) text += finding.text();
  if (clean()) text = fmt::format("clean under {} schedule{}\n", schedules, schedules == 1 ? "" : "s");
  if (strategy == Strategy::kDfs)
    text += exhausted ? "dfs is exhausted: at most two late points, each choice was tried\n"
                      : "dfs is not exhausted: more schedules try more choices of late points\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const CheckResult& result) { return out << result.text(); }

}  // namespace tandem
