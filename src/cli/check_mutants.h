#pragma once
/// The mutation suite of `tandem check --mutants`.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/mutants.h"
#include "cli/check_cases.h"

namespace tandem::cli {

enum class Fate { kKilled, kEquivalent, kSurvived };

/// A mutant of one algorithm and what became of it.
struct MutantResult {
  std::string op;
  std::string algorithm;
  checker::Mutant mutant;
  int number = 0;  ///< which of its file's call sites of this operation it is, from 1
  Fate fate = Fate::kSurvived;
  int schedules = 0;    ///< until it was killed, or all
  std::string by;       ///< kind of the finding that killed it
  std::string reason;   ///< why it is equivalent
  std::string replay;   ///< the case that killed it
};

/// Why a mutant cannot be told from the program: an entry of equivalent_mutants.json.
struct Equivalence {
  std::string file;
  std::string operation;
  int number = 0;
  std::string fault;
  std::string algorithm;  ///< "all_reduce.ring"; empty: every one
  std::string reason;
};
const std::vector<Equivalence>& equivalences();

/// Makes and runs all mutants of the cases' algorithms. `schedules`: for each mutant and case at most. `each` is told of
/// every result.
std::vector<MutantResult> run_mutants(const std::vector<CheckCase>& cases, int schedules,
                                      const std::function<void(const MutantResult&)>& each);

}  // namespace tandem::cli
