#pragma once
/// For which products a machine's GEMM model was compared with measurements.

#include <string>

#include "tandem/machine.h"

namespace tandem::detail {

/// Why a predicted time of one PE's `problem` was not compared with anything: a line of text, empty where it was.
std::string beyond_gemm_fit(const Machine& machine, const GemmShape& problem);

}  // namespace tandem::detail
