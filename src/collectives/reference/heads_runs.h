#pragma once
/// Runs of merge_heads with known results.

#include <string>
#include <vector>

#include "tandem/layer/merge_heads.h"

namespace tandem::kernels {

struct HeadsRuns {
  MergeHeadsOptions options;
  std::vector<Size> batches;  ///< of each run, one behind the other in a stream
  bool in_place = false;      ///< where a run allows that
};

/// Makes a plan, runs it and returns the first error of this PE's results, or "". All PEs call it.
std::string wrong_of_runs(World& world, const HeadsRuns& runs);

}  // namespace tandem::kernels
