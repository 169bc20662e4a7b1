#include "tools/tandem/check/check_mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/mapping_pool.h"
#include "check/schedules.h"

namespace tandem::cli {

/// The build generates it from equivalent_mutants.json.
extern const char* const kEquivalentMutants;

namespace {

using checker::CallSite;
using sim::Fault;

/// A mutant that is claimed to be equivalent is still tried. A wrong claim shows early: mutants die in the first few
/// schedules.
constexpr Effort kEffortForEquivalents{5, 100'000};

using Examined = std::shared_ptr<const ExaminedCase>;

Examined examine(const CheckCase& one) {
  auto examined = std::make_shared<ExaminedCase>(ExaminedCase{one, check_options(one), one.make(), 0, {}});
  checker::SiteCollector collector;
  checker::CountingSchedule undisturbed;
  const checker::Outcome outcome = run_case_once(*examined->program, examined->options, 1, undisturbed, &collector);
  examined->footprint = outcome.footprint;
  examined->sites = collector.sites();
  return examined;
}

/// Sorted by algorithm, in the order of the cases.
std::vector<std::vector<Examined>> group(const std::vector<CheckCase>& cases) {
  std::vector<std::vector<Examined>> groups;
  for (const CheckCase& one : cases) {
    const auto same = [&](const std::vector<Examined>& g) {
      return g.front()->one.op == one.op && g.front()->one.algorithm == one.algorithm;
    };
    auto at = std::find_if(groups.begin(), groups.end(), same);
    if (at == groups.end()) at = groups.insert(groups.end(), std::vector<Examined>{});
    at->push_back(examine(one));
  }
  return groups;
}

std::set<CallSite> sites_of(const std::vector<Examined>& cases) {
  std::set<CallSite> sites;
  for (const Examined& examined : cases) sites.insert(examined->sites.begin(), examined->sites.end());
  return sites;
}

/// The number of each call site among those of its file and operation.
std::map<CallSite, int> number_sites(const std::vector<std::vector<Examined>>& groups) {
  std::set<CallSite> all;
  for (const auto& cases : groups) all.merge(sites_of(cases));
  std::map<std::pair<std::string, sim::SyncOperation>, int> last;
  std::map<CallSite, int> numbers;
  for (const CallSite& site : all) numbers[site] = ++last[{site.file, site.operation}];
  return numbers;
}

/// If a counter that advances by two leads to the same accesses, it selects no half of a double buffer. The mutant then
/// has nothing to break.
bool is_mutant(const PlannedMutant& planned) {
  if (planned.about.mutant.fault != Fault::kSameParity) return true;
  return std::any_of(planned.cases.begin(), planned.cases.end(), [&](const Examined& examined) {
    checker::OneFault fault(planned.about.mutant);
    checker::CountingSchedule undisturbed;
    return run_case_once(*examined->program, examined->options, 1, undisturbed, &fault).footprint !=
           examined->footprint;
  });
}

bool is_about(const Equivalence& known, const MutantResult& result) {
  const std::string algorithm = result.op + "." + result.algorithm;
  const auto& algorithms = known.algorithms;
  return known.file == result.mutant.site.file && known.number == result.number &&
         known.operation == checker::name(result.mutant.site.operation) &&
         known.fault == checker::name(result.mutant.fault) &&
         (algorithms.empty() || std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end());
}

const Equivalence* equivalence(const MutantResult& result) {
  const auto& all = equivalences();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Equivalence& known) { return is_about(known, result); });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

const std::vector<Equivalence>& equivalences() {
  static const std::vector<Equivalence> all = [] {
    std::vector<Equivalence> read;
    for (const auto& entry : nlohmann::json::parse(kEquivalentMutants))
      for (const auto& fault : entry.at("faults"))
        read.push_back({entry.at("file"), entry.at("operation"), entry.at("number"), fault,
                        entry.value("algorithms", std::vector<std::string>{}), entry.at("reason")});
    return read;
  }();
  return all;
}

std::vector<PlannedMutant> plan_mutants(const std::vector<CheckCase>& cases, const std::vector<CheckCase>& all_cases) {
  const auto groups = group(cases);
  auto numbered = groups;
  if (cases.size() != all_cases.size())
    for (auto& other : group(all_cases)) numbered.push_back(std::move(other));
  const auto numbers = number_sites(numbered);
  std::vector<PlannedMutant> all;
  for (const auto& examined : groups) {
    for (const CallSite& site : sites_of(examined)) {
      for (const Fault fault : checker::faults_of(site.operation)) {
        PlannedMutant planned;
        planned.about.op = examined.front()->one.op;
        planned.about.algorithm = examined.front()->one.algorithm;
        planned.about.mutant = {site, fault};
        planned.about.number = numbers.at(site);
        for (const Examined& one : examined)
          if (std::binary_search(one->sites.begin(), one->sites.end(), site)) planned.cases.push_back(one);
        if (is_mutant(planned)) all.push_back(std::move(planned));
      }
    }
  }
  return all;
}

std::string name(const checker::Mutant& mutant) {
  return fmt::format("{} {} at {}:{}", checker::name(mutant.site.operation), checker::name(mutant.fault),
                     mutant.site.file, mutant.site.line);
}

checker::Mutant choose_mutant(const std::string& text, std::vector<CheckCase>& cases) {
  checker::Mutant mutant;
  std::set<std::string> names;
  for (const PlannedMutant& planned : plan_mutants(cases, cases)) {
    if (name(planned.about.mutant) != text) continue;
    mutant = planned.about.mutant;
    for (const Examined& examined : planned.cases) names.insert(examined->one.name());
  }
  std::erase_if(cases, [&](const CheckCase& one) { return names.count(one.name()) == 0; });
  if (cases.empty())
    throw InvalidArgument(
        fmt::format("--break: '{}' given, which no configuration reaches; `tandem check OP --mutants --list` names "
                    "those of an operation, as 'wait dropped at src/collectives/x.h:35'",
                    text));
  return mutant;
}

std::vector<std::string> stale_equivalences(const std::vector<PlannedMutant>& planned) {
  std::vector<std::string> stale;
  for (const Equivalence& known : equivalences())
    if (std::none_of(planned.begin(), planned.end(),
                     [&](const PlannedMutant& mutant) { return is_about(known, mutant.about); }))
      stale.push_back(fmt::format("{} {} number {} of {}", known.operation, known.fault, known.number, known.file));
  return stale;
}

namespace {

/// Tries schedules of one strategy until one has a finding. Returns whether one had.
bool is_killed(const PlannedMutant& planned, Strategy strategy, Effort effort, MutantResult& result) {
  std::vector<std::uint64_t> points;
  std::vector<CheckOptions> all_options;
  for (const Examined& examined : planned.cases) {
    CheckOptions& options = all_options.emplace_back(examined->options);
    options.strategy = strategy;
    points.push_back(checker::count_points([&](World& world) { examined->program->run(world); }, options));
  }
  std::uint64_t operations = 0;
  for (int seed = 1; seed <= effort.schedules && operations < effort.operations; ++seed) {
    for (std::size_t i = 0; i < planned.cases.size(); ++i) {
      const Examined& examined = planned.cases[i];
      checker::OneFault fault(result.mutant);
      const auto at = static_cast<std::uint64_t>(seed);
      const auto schedule = checker::make_schedule(all_options[i], at, points[i]);
      const auto outcome = run_case_once(*examined->program, all_options[i], at, *schedule, &fault);
      result.schedules = seed;
      operations += outcome.operations;
      if (outcome.findings.empty()) continue;
      result.fate = Fate::kKilled;
      result.by = outcome.findings.front().kind;
      result.replay = examined->one.name();
      return true;
    }
  }
  return false;
}

}  // namespace

MutantResult run_mutant(const PlannedMutant& planned, Effort effort) {
  MutantResult result = planned.about;
  const Equivalence* const known = equivalence(result);
  const MappingPool pool;
  if (known != nullptr)
    effort = {std::min(effort.schedules, kEffortForEquivalents.schedules),
              std::min(effort.operations, kEffortForEquivalents.operations)};
  // Some races need a PE with a larger delay than random schedules have.
  for (const Strategy strategy : {Strategy::kRandom, Strategy::kDelay})
    if (is_killed(planned, strategy, effort, result)) return result;
  // A mutant that was killed is not equivalent, whatever the data file claims.
  if (known != nullptr) {
    result.fate = Fate::kEquivalent;
    result.reason = known->reason;
  }
  return result;
}

}  // namespace tandem::cli
