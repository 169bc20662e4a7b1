#pragma once
/// The mutation suite of `tandem check --mutants`.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "check/mutants.h"
#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {

enum class Fate { kKilled, kEquivalent, kSurvived };

/// A mutant of one algorithm and its result.
struct MutantResult {
  std::string op;
  std::string algorithm;
  checker::Mutant mutant;
  int number = 0;  ///< number among its file's call sites of this operation, from 1, over all cases
  Fate fate = Fate::kSurvived;
  int schedules = 0;   ///< schedules until it was killed, or all
  std::string by;      ///< kind of the finding that killed it
  std::string reason;  ///< why it is equivalent
  std::string replay;  ///< the case that killed it
};

/// The reason why a mutant behaves like the program: an entry of equivalent_mutants.json.
struct Equivalence {
  std::string file;
  std::string operation;
  int number = 0;
  std::string fault;
  std::vector<std::string> algorithms;  ///< "all_reduce.ring", ...; empty: all
  std::string reason;
};
const std::vector<Equivalence>& equivalences();

/// A case and its behaviour without a fault.
struct ExaminedCase {
  CheckCase one;
  CheckOptions options;
  std::unique_ptr<CheckProgram> program;
  std::uint64_t footprint = 0;
  std::vector<checker::CallSite> sites;
};

/// A mutant with the cases that reach its call site.
struct PlannedMutant {
  MutantResult about;
  std::vector<std::shared_ptr<const ExaminedCase>> cases;
};

/// Returns all mutants of the cases' algorithms. Call sites are numbered over `all`, so that numbers do not depend on
/// the selection.
std::vector<PlannedMutant> plan_mutants(const std::vector<CheckCase>& cases, const std::vector<CheckCase>& all);
/// Returns "wait dropped at src/collectives/x.h:35".
std::string name(const checker::Mutant& mutant);
/// Returns the mutant that `text` names. `cases` keeps only those that reach its call site. Throws InvalidArgument if
/// there is none.
checker::Mutant choose_mutant(const std::string& text, std::vector<CheckCase>& cases);
/// Returns the names of entries of equivalent_mutants.json that match no mutant, because call sites moved.
std::vector<std::string> stale_equivalences(const std::vector<PlannedMutant>& planned);
/// Limits on how much each strategy tries before a mutant counts as a survivor.
struct Effort {
  int schedules = 200;                   ///< of each case
  std::uint64_t operations = 5'000'000;  ///< in the runs of all cases; no schedule starts after so many
};
/// Runs one mutant until it is killed, within `effort`.
MutantResult run_mutant(const PlannedMutant& planned, Effort effort);

}  // namespace tandem::cli
