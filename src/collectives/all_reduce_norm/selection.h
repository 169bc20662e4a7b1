#pragma once
/// The algorithm of all_reduce_norm where the caller leaves it open.

#include <optional>
#include <string>

#include "tandem/layer/all_reduce_norm.h"
#include "tune/selection.h"

namespace tandem::kernels {

/// Returns the name of the algorithm for runs of max_rows rows on `pes` PEs of a machine.
std::string suitable_norm_algorithm(const AllReduceNormOptions& options, int pes, const Machine& machine);

/// Returns the choice of the caller's table (TANDEM_SELECTION) for such runs, if it has one.
std::optional<tune::SelectedChoice> tuned_norm(const World& world, const AllReduceNormOptions& options);

}  // namespace tandem::kernels
