#pragma once
/// What is done to the sums of a GEMM before they are stored: scales, bias and activation.

#include "tandem/gemm.h"

namespace tandem {

/// Throws InvalidArgument where partial sums would get an activation or a scale of C.
void check_finish(const Gemm& gemm);

/// The activation's definition.
float activate(Activation activation, float value);

/// The type of the bias's values.
DType bias_type(const Gemm& gemm);

/// Scales `sums` (rows.size() x cols.size(), row-major) of these rows and columns of C, adds the bias, applies the
/// activation.
void finish_sums(const Gemm& gemm, Range rows, Range cols, float* sums);

}  // namespace tandem
