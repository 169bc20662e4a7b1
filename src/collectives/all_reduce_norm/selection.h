#pragma once
/// The algorithm of all_reduce_norm where the caller leaves it open.

#include <string>

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

/// Returns the name of the algorithm for runs of max_rows rows on `pes` PEs.
std::string suitable_norm_algorithm(const AllReduceNormOptions& options, int pes);

}  // namespace tandem::kernels
