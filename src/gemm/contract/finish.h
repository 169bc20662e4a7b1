#pragma once
/// What is done to the sums of a GEMM before they are stored: scales, bias and activation.

#include "gemm/contract/activation.h"
#include "tandem/advanced/gemm.h"

namespace tandem {

/// Throws InvalidArgument for an activation that is none of the enumeration's, and where partial sums would get an
/// activation or a scale of C.
void check_finish(const Gemm& gemm);

/// The type of the bias's values.
DType bias_type(const Gemm& gemm);

/// Scales `sums` (rows.size() x cols.size(), row-major) of these rows and columns of C, adds the bias, applies the
/// activation; in a chain, whose sums are not complete yet, none.
void finish_sums(const Gemm& gemm, Range rows, Range cols, float* sums);

}  // namespace tandem
