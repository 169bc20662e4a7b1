#include "cli/check_mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "check/schedules.h"

namespace tandem::cli {

/// Generated from equivalent_mutants.json.
extern const char* const kEquivalentMutants;

namespace {

using checker::CallSite;
using checker::Mutant;
using sim::Fault;

/// A mutant that is claimed to be equivalent is still tried, under so many schedules.
constexpr int kSchedulesOfEquivalents = 10;

/// An algorithm's cases, and what they do when nothing is broken.
struct Group {
  struct Subject {
    const CheckCase* one = nullptr;
    CheckOptions options;
    std::uint64_t footprint = 0;
    std::vector<CallSite> sites;
  };
  std::string op, algorithm;
  std::vector<Subject> subjects;
};

Group::Subject examine(const CheckCase& one) {
  Group::Subject subject{&one, check_options(one), 0, {}};
  checker::SiteCollector collector;
  checker::CountingSchedule undisturbed;
  const checker::Outcome outcome = run_case_once(one, subject.options, 1, undisturbed, &collector);
  subject.footprint = outcome.footprint;
  subject.sites = collector.sites();
  return subject;
}

std::vector<Group> group(const std::vector<CheckCase>& cases) {
  std::vector<Group> groups;
  for (const CheckCase& one : cases) {
    const auto same = [&](const Group& g) { return g.op == one.op && g.algorithm == one.algorithm; };
    auto at = std::find_if(groups.begin(), groups.end(), same);
    if (at == groups.end()) at = groups.insert(groups.end(), {one.op, one.algorithm, {}});
    at->subjects.push_back(examine(one));
  }
  return groups;
}

/// Number of each call site among those of its file and operation.
std::map<CallSite, int> number_sites(const std::vector<Group>& groups) {
  std::set<CallSite> all;
  for (const Group& g : groups)
    for (const Group::Subject& subject : g.subjects) all.insert(subject.sites.begin(), subject.sites.end());
  std::map<std::pair<std::string, sim::SyncOperation>, int> last;
  std::map<CallSite, int> numbers;
  for (const CallSite& site : all) numbers[site] = ++last[{site.file, site.operation}];
  return numbers;
}

bool passes(const Group::Subject& subject, const CallSite& site) {
  return std::binary_search(subject.sites.begin(), subject.sites.end(), site);
}

/// A counter that advances by two and still leads to the same accesses chose no half of a double buffer: the program
/// has nothing there to break.
bool is_mutant(const Group& g, const Mutant& mutant) {
  if (mutant.fault != Fault::kSameParity) return true;
  for (const Group::Subject& subject : g.subjects) {
    if (!passes(subject, mutant.site)) continue;
    checker::OneFault fault(mutant);
    checker::CountingSchedule undisturbed;
    const auto outcome = run_case_once(*subject.one, subject.options, 1, undisturbed, &fault);
    if (outcome.footprint != subject.footprint) return true;
  }
  return false;
}

void run_mutant(const Group& g, int schedules, MutantResult& result) {
  for (int seed = 1; seed <= schedules; ++seed) {
    for (const Group::Subject& subject : g.subjects) {
      if (!passes(subject, result.mutant.site)) continue;
      checker::OneFault fault(result.mutant);
      const auto schedule = checker::make_schedule(Strategy::kRandom, static_cast<std::uint64_t>(seed),
                                                   subject.one->pes, 0);
      const auto outcome =
          run_case_once(*subject.one, subject.options, static_cast<std::uint64_t>(seed), *schedule, &fault);
      result.schedules = seed;
      if (outcome.findings.empty()) continue;
      result.fate = Fate::kKilled;
      result.by = outcome.findings.front().kind;
      result.replay = subject.one->name();
      return;
    }
  }
}

const Equivalence* equivalence(const MutantResult& result) {
  for (const Equivalence& known : equivalences()) {
    const bool same = known.file == result.mutant.site.file && known.number == result.number &&
                      known.operation == checker::name(result.mutant.site.operation) &&
                      known.fault == checker::name(result.mutant.fault);
    if (same && (known.algorithm.empty() || known.algorithm == result.op + "." + result.algorithm)) return &known;
  }
  return nullptr;
}

}  // namespace

const std::vector<Equivalence>& equivalences() {
  static const std::vector<Equivalence> all = [] {
    std::vector<Equivalence> read;
    for (const auto& entry : nlohmann::json::parse(kEquivalentMutants))
      read.push_back({entry.at("file"), entry.at("operation"), entry.at("number"), entry.at("fault"),
                      entry.value("algorithm", ""), entry.at("reason")});
    return read;
  }();
  return all;
}

std::vector<MutantResult> run_mutants(const std::vector<CheckCase>& cases, int schedules,
                                      const std::function<void(const MutantResult&)>& each) {
  const std::vector<Group> groups = group(cases);
  const std::map<CallSite, int> numbers = number_sites(groups);
  std::vector<MutantResult> results;
  for (const Group& g : groups) {
    std::set<CallSite> sites;
    for (const Group::Subject& subject : g.subjects) sites.insert(subject.sites.begin(), subject.sites.end());
    for (const CallSite& site : sites) {
      for (const Fault fault : checker::faults_of(site.operation)) {
        MutantResult result{g.op, g.algorithm, {site, fault}, numbers.at(site), Fate::kSurvived, 0, {}, {}, {}};
        if (!is_mutant(g, result.mutant)) continue;
        const Equivalence* const known = equivalence(result);
        run_mutant(g, known != nullptr ? std::min(schedules, kSchedulesOfEquivalents) : schedules, result);
        // What is killed is not equivalent, whatever was written.
        if (known != nullptr && result.fate == Fate::kSurvived) {
          result.fate = Fate::kEquivalent;
          result.reason = known->reason;
        }
        each(result);
        results.push_back(std::move(result));
      }
    }
  }
  return results;
}

}  // namespace tandem::cli
