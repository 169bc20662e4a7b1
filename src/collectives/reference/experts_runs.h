#pragma once
/// Runs of experts with known results.

#include <string>
#include <vector>

#include "tandem/layer/experts.h"

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
  bool long_ids = false;            ///< i64
  bool weights = true;              ///< given, else all 1
  bool tokens_on_device = false;    ///< the number of tokens is in device memory
  bool add = false;                 ///< something is added to the combined rows
};

/// Makes a plan, runs it and returns the first error of this PE's results, or "". All PEs call it. Every element is
/// exact, since weights are powers of two and values are small integers.
std::string wrong_of_runs(World& world, const ExpertRuns& runs);

}  // namespace tandem::kernels
