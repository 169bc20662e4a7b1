#pragma once
/// Runs of all_gather_gemm whose A is normed first, with exact results (NormExample). B is a part of the identity, so C
/// has the own columns of the normed rows.

#include "operators/reference/normed_runs.h"

namespace tandem::ops {

/// See wrong_of_normed_runs. n is also the depth.
std::string wrong_of_normed_gather(World& world, Stream& main, const NormedRuns& runs);

}  // namespace tandem::ops
