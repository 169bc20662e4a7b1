#pragma once
/// Runs of all_reduce_norm with known results.

#include <string>
#include <vector>

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

/// The places of the outputs.
enum class NormPlaces {
  kSeparate,       ///< buffers of their own
  kSumInInput,     ///< the sum in the place of the input, an unquantised out in that of the residual
  kSumInResidual,  ///< the sum in the place of the residual, an unquantised out in that of the input
};

struct NormRuns {
  AllReduceNormOptions options;
  std::vector<Size> rows;  ///< of each run, one behind the other in a stream
  NormPlaces places = NormPlaces::kSeparate;
  bool fractions = false;  ///< see NormExample
};

/// Makes a plan, runs it and returns the first error of this PE's results, or "". All PEs call it.
std::string wrong_of_runs(World& world, const NormRuns& runs);

}  // namespace tandem::kernels
