// `tandem check`.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <set>
#include <utility>

#include "tandem/error.h"
#include "tools/tandem/check/check_cases.h"
#include "tools/tandem/check/check_json.h"
#include "tools/tandem/check/check_report.h"
#include "tools/tandem/data/workers.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/options/progress.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Returns "1 finding" or "2 findings".
std::string counted(std::size_t number, const char* noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

bool is_all(const CheckArguments& a) { return a.subject.empty() || a.subject == "all"; }

/// The number of schedules in the mutation suite.
std::vector<CheckCase> mutation_cases() {
  std::vector<CheckCase> all = check_cases({3, 4});
  // A ring of four PEs already gives the order for which these credits exist.
  for (CheckCase& one : check_cases({8}))
    if (one.op == "send_recv" && one.algorithm == "grouped") all.push_back(std::move(one));
  return all;
}

void leave_out_twins(std::vector<CheckCase>& cases) {
  std::erase_if(cases, [](const CheckCase& one) { return one.has_twin; });
}

std::vector<CheckCase> known_cases(const CheckArguments& a) {
  if (!a.pes.empty()) return check_cases(a.pes);
  if (!a.one_case.empty()) return check_cases({2, 3, 4, 5, 6, 7, 8});
  return a.mutants ? mutation_cases() : check_cases({2, 3, 4});
}

void keep_algorithm(std::vector<CheckCase>& cases, const std::string& algorithm, const std::string& of) {
  std::set<std::string> algorithms;
  for (const CheckCase& one : cases) algorithms.insert(one.algorithm);
  if (algorithms.count(algorithm) == 0)
    throw InvalidArgument(
        fmt::format("--algo: '{}' given, allowed{} are {}", algorithm, of, fmt::join(algorithms, ", ")));
  std::erase_if(cases, [&](const CheckCase& one) { return one.algorithm != algorithm; });
}

/// The operation whose configurations contain the subject: those of experts route, dispatch and combine.
std::string checked_operation(const std::string& subject) {
  return subject == "dispatch" || subject == "combine" ? "experts" : subject;
}

std::vector<CheckCase> chosen_cases(const CheckArguments& a) {
  std::vector<CheckCase> all = known_cases(a);
  std::set<std::string> ops{"combine", "dispatch"};
  for (const CheckCase& one : all) ops.insert(one.op);
  if (!is_all(a) && ops.count(a.subject) == 0)
    throw InvalidArgument(fmt::format("OP: '{}' given, allowed is one of all, {}", a.subject, fmt::join(ops, ", ")));
  std::erase_if(all, [&](const CheckCase& one) { return !is_all(a) && one.op != checked_operation(a.subject); });
  if (a.mutants) leave_out_twins(all);
  if (all.empty())
    throw InvalidArgument(fmt::format(
        "--mutants: '{}' given, whose call sites are all those of other operations; their mutants break them",
        a.subject));
  const std::string of = is_all(a) ? "" : fmt::format(" of {}", a.subject);
  if (!a.algorithm.empty()) keep_algorithm(all, a.algorithm, of);
  if (!a.one_case.empty()) {
    std::erase_if(all, [&](const CheckCase& one) { return one.name() != a.one_case; });
    if (all.empty())
      throw InvalidArgument(
          fmt::format("--case: '{}' given, which is no configuration{} on these numbers of PEs; "
                      "`tandem check --list` names them, as all_reduce.ring.4x2",
                      a.one_case, of));
  }
  return all;
}

/// Returns a function that takes the number of parts done so far and advances by the new ones.
std::function<void(std::size_t)> advance(Progress& progress) {
  return [&progress, before = std::size_t{0}](std::size_t done) mutable {
    progress.advance(static_cast<int>(done - std::exchange(before, done)));
  };
}

CheckOptions options_of(const CheckCase& one, const CheckArguments& a) {
  CheckOptions options = check_options(one);
  options.schedules = a.schedules;
  options.strategy = parse_strategy(a.strategy);
  options.seed = a.seed;
  if (!a.broken.empty()) options.replay += fmt::format(" --break '{}'", a.broken);
  return options;
}

/// A part of a configuration's schedules, which a worker runs at once.
struct Portion {
  const CheckCase* one = nullptr;
  int first = 0;
  int schedules = 0;
};

std::vector<Portion> portions(const std::vector<CheckCase>& cases, int schedules) {
  constexpr int kMost = 100;
  std::vector<Portion> all;
  for (const CheckCase& one : cases)
    for (int first = 0; first < schedules; first += kMost)
      all.push_back({&one, first, std::min(kMost, schedules - first)});
  return all;
}

Json check_portion(const Portion& portion, const CheckArguments& a, sim::Faults* faults) {
  CheckOptions options = options_of(*portion.one, a);
  options.seed += static_cast<std::uint64_t>(portion.first);
  options.schedules = portion.schedules;
  options.check_determinism = portion.first == 0;
  const CheckResult result = run_check(*portion.one, options, faults);
  Json json{{"schedules", result.schedules}, {"exhausted", result.exhausted}, {"findings", Json::array()}};
  for (const Finding& finding : result.findings) {
    json["findings"].push_back(to_json(finding));
    json["findings"].back()["text"] = finding.text();
    json["findings"].back()["seed"] = finding.seed;
  }
  return json;
}

/// Identifies a mistake by its places, independent of the launch.
std::string key_of(const Json& finding) {
  std::string key = finding["kind"];
  for (const Json& site : finding["sites"])
    key += fmt::format("|{}:{}:{}:{}", site["file"].get<std::string>(), site["line"].get<int>(),
                       site["operation"].get<std::string>(), site["by"].get<std::string>());
  return key;
}

int check_schedules(const CheckArguments& a, const std::vector<CheckCase>& cases, sim::Faults* faults) {
  const std::vector<Portion> work = portions(cases, a.schedules);
  // Starts with the last ones, which are the largest, so that no worker gets a large one at the end.
  const auto at = [&](std::size_t i) { return work.size() - 1 - i; };
  const auto results = [&] {
    Progress progress(static_cast<int>(work.size()));
    progress.begin("schedules of " + counted(cases.size(), "configuration"));
    return run_workers(
        work.size(), [&](std::size_t i) { return check_portion(work[at(i)], a, faults); }, advance(progress));
  }();

  Json findings = Json::array();
  std::set<std::string> seen;
  std::string text;
  int schedules = 0;
  std::set<const CheckCase*> exhausted;
  const CheckCase* first = nullptr;
  std::uint64_t first_seed = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const Json& result = results[at(i)];
    schedules += result["schedules"].get<int>();
    if (result["exhausted"]) exhausted.insert(work[i].one);
    for (Json finding : result["findings"]) {
      if (first == nullptr) {
        first = work[i].one;
        first_seed = finding["seed"];
      }
      // One mistake shows in many configurations; only the first one is reported.
      if (!seen.insert(key_of(finding)).second) continue;
      text += finding["text"].get<std::string>() + "\n";
      finding.erase("text");
      finding.erase("seed");
      findings.push_back(std::move(finding));
    }
  }
  Json json{
      {"op", is_all(a) ? "all" : a.subject}, {"schedules", a.schedules}, {"strategy", a.strategy}, {"seed", a.seed},
      {"configurations", cases.size()},      {"runs", schedules},        {"findings", findings}};
  const bool is_dfs = a.strategy == name(Strategy::kDfs);
  if (is_dfs) json["exhausted"] = exhausted.size() == cases.size();
  write_json(a, json);
  if (!a.json_to_stdout())
    std::cout << text
              << fmt::format("{}, {}: {}{}\n", counted(cases.size(), "configuration"),
                             counted(static_cast<std::size_t>(schedules), "schedule"),
                             findings.empty() ? "clean" : counted(findings.size(), "finding"),
                             is_dfs ? fmt::format("; dfs is exhausted in {} of them", exhausted.size()) : "");
  if (!a.report.empty() && first != nullptr)
    write_check_report(a.report, *first, options_of(*first, a), first_seed, faults);
  return findings.empty() ? kRight : kWrong;
}

/// The values of --algo and --case.
int list_cases(const CheckArguments& a, const std::vector<CheckCase>& cases) {
  Json rows = Json::array();
  std::string text, last;
  for (const CheckCase& one : cases) {
    rows.push_back({{"op", one.op}, {"algorithm", one.algorithm}, {"case", one.name()}});
    const std::string head = fmt::format("{} --algo {}\n", one.op, one.algorithm);
    if (head != last) text += head;
    last = head;
    text += fmt::format("  --case {}\n", one.name());
  }
  write_json(a, rows);
  if (!a.json_to_stdout()) std::cout << text << counted(cases.size(), "configuration") << '\n';
  return kRight;
}

/// Plans the mutants of `cases`. Call sites are numbered over the whole mutation suite.
std::vector<PlannedMutant> plan_all_mutants(const std::vector<CheckCase>& cases) {
  std::vector<CheckCase> numbered = mutation_cases();
  leave_out_twins(numbered);
  return plan_mutants(cases, numbered);
}

/// Lists the values of --break.
int list_mutants(const CheckArguments& a, const std::vector<CheckCase>& cases) {
  Json rows = Json::array();
  std::string text;
  // Numbers of call sites are not shown, so only these cases run.
  for (const PlannedMutant& planned : plan_mutants(cases, cases)) {
    const MutantResult& about = planned.about;
    rows.push_back({{"op", about.op}, {"algorithm", about.algorithm}, {"mutant", name(about.mutant)}});
    text += fmt::format("{} --algo {} --break '{}'\n", about.op, about.algorithm, name(about.mutant));
  }
  write_json(a, rows);
  if (!a.json_to_stdout()) std::cout << text << counted(rows.size(), "mutant") << '\n';
  return kRight;
}

int check_mutants(const CheckArguments& a, const std::vector<CheckCase>& cases) {
  // A number of schedules that the user gives is run in full.
  const Effort effort = a.schedules_given ? Effort{a.schedules, std::numeric_limits<std::uint64_t>::max()} : Effort{};
  const std::vector<PlannedMutant> planned = plan_all_mutants(cases);
  const bool everything = is_all(a) && a.pes.empty() && a.algorithm.empty() && a.one_case.empty();
  const auto stale = everything ? stale_equivalences(planned) : std::vector<std::string>{};
  const auto results = [&] {
    Progress progress(static_cast<int>(planned.size()));
    progress.begin(counted(planned.size(), "mutant"));
    return run_workers(
        planned.size(), [&](std::size_t i) { return to_json(run_mutant(planned[i], effort)); }, advance(progress));
  }();
  Json json = mutants_json(results);
  json["stale"] = stale;
  write_json(a, json);
  if (!a.json_to_stdout()) std::cout << mutants_table(json);
  return json["survived"] == 0 && stale.empty() ? kRight : kWrong;
}

}  // namespace

int execute(const CheckArguments& a) {
  check_json_file(a, {a.report});
  if (!a.report.empty()) check_output("--report", a.report);
  std::vector<CheckCase> cases = chosen_cases(a);
  if (a.list && a.mutants) return list_mutants(a, cases);
  if (a.list) {
    std::ranges::stable_sort(cases, {}, [](const CheckCase& one) { return std::pair(one.op, one.algorithm); });
    return list_cases(a, cases);
  }
  if (a.mutants) return check_mutants(a, cases);
  if (a.broken.empty()) return check_schedules(a, cases, nullptr);
  checker::OneFault fault(choose_mutant(a.broken, cases));
  return check_schedules(a, cases, &fault);
}

}  // namespace tandem::cli
