#include "tools/tandem/check/check_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tandem/check.h"
#include "tandem/error.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

namespace {

constexpr int kMostPes = 32;
constexpr int kMostSchedules = 1'000'000;

/// Returns "2,3,4".
std::vector<int> parse_pes(const std::string& text) {
  std::vector<int> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<int> pes = whole_number(std::string_view(text).substr(begin, end - begin));
    if (!pes || *pes < 1 || *pes > kMostPes)
      throw InvalidArgument(
          fmt::format("--pes: '{}' given, allowed are numbers from 1 to {} with commas between them", text, kMostPes));
    all.push_back(*pes);
    begin = end + 1;
  }
  return all;
}

}  // namespace

void add_check(CLI::App& app, CheckArguments& a, std::string& seed, std::string& json, std::string& report) {
  CLI::App& check = *app.add_subcommand("check", "check collectives or operators for races, hangs and wrong results");
  check.add_option("OP", a.subject,
                   "collective, operator, merge_heads, layers (consecutive operators), barrier, send_recv_group, or "
                   "`all` (the default)");
  check
      .add_option("--schedules", a.schedules,
                  "number of schedules for each configuration (with --mutants: for each mutant, 200)")
      ->capture_default_str();
  check.add_option("--strategy", a.strategy, "strategy of the schedules: random, pct, delay or dfs")
      ->capture_default_str();
  check.add_option("--seed", seed, "seed of the first schedule; later ones have the following numbers")
      ->type_name("N")
      ->capture_default_str();
  check.add_option("--pes", a.pes_text, "numbers of PEs to try (default: 2,3,4; with --mutants: 3,4)")
      ->type_name("N,...");
  check.add_option("--algo", a.algorithm, "check only this algorithm, named as by --list");
  check.add_option("--case", a.one_case, "check only this configuration, named as by --list and in reports");
  check.add_flag("--list", a.list,
                 "list algorithms and configurations (with --mutants: the mutants) instead of checking them");
  check.add_flag("--mutants", a.mutants,
                 "break every synchronising call site, one at a time, and check that it is found");
  check.add_option("--break", a.broken,
                   "check with one broken call site, named as by --mutants: 'wait dropped at src/collectives/x.h:35'");
  check.add_option("--json", json, "write the result as JSON to FILE, or to standard output (-)")->type_name("FILE|-");
  check.add_option("--report", report, "write the timeline of the first finding's schedule as an HTML page")
      ->type_name("FILE.html");
  check.callback([&a, &check] {
    a.schedules_given = check.count("--schedules") > 0;
    if (check.count("--pes") > 0) a.pes = parse_pes(a.pes_text);
  });
}

void validate(const CheckArguments& a) {
  if (a.schedules < 1 || a.schedules > kMostSchedules)
    throw InvalidArgument(fmt::format("--schedules: {} given, allowed is 1 to {}", a.schedules, kMostSchedules));
  if (a.mutants && !a.broken.empty())
    throw InvalidArgument("--break: does not go with --mutants, which breaks all call sites");
  try {
    parse_strategy(a.strategy);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
}

}  // namespace tandem::cli
