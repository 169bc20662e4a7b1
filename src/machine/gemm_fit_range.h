#pragma once
/// The range of products in which a machine's GEMM model was compared with measurements.

#include <string>

#include "tandem/machine.h"

namespace tandem::detail {

/// Returns why the predicted time of one PE's `problem` lies outside the measured range, or "" if it lies inside.
std::string beyond_gemm_fit(const Machine& machine, const GemmShape& problem);

}  // namespace tandem::detail
