#pragma once
/// Runs of experts with known results.

#include <string>
#include <vector>

#include "collectives/reference/expert_trial.h"

namespace tandem::kernels {

/// One routing, and what uses it.
struct ExpertRound {
  std::string routing = "random";  ///< see expert_choices
  Size tokens = 0;                 ///< of a PE, at most
  int uses = 1;                    ///< dispatches and then combines with it
};

struct ExpertRuns {
  ExpertOptions options;
  std::vector<ExpertRound> rounds;  ///< one behind the other in a stream
  ExpertInput input;                ///< of all rounds, beside routing, tokens and seed
};

/// Makes a plan, runs it and returns the first error of this PE's results, or "". All PEs call it.
std::string wrong_of_runs(World& world, const ExpertRuns& runs);

}  // namespace tandem::kernels
