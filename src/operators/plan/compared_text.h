#pragma once
/// The text by which PEs compare the options of their operators.

#include <string>

#include "tandem/operators.h"

namespace tandem::ops {

/// Returns "gemm_all_reduce bf16 of at most 64 x 32 x 16", then the options that differ from their defaults. All PEs
/// have to give the same ones.
std::string compared_text(Operator op, const OperatorOptions& options);

}  // namespace tandem::ops
