#pragma once
/// The epilogue of a GEMM: scales, bias and activation of the sums before they are stored.

#include "gemm/contract/activation.h"
#include "tandem/advanced/gemm.h"

namespace tandem {

/// Throws InvalidArgument for an unknown activation, and if partial sums would get an activation or a scale of C.
/// Throws for scales that do not suit each other.
void check_epilogue(const Gemm& gemm);

/// Returns the type of the bias's values.
DType bias_type(const Gemm& gemm);

/// Scales `sums` (rows.size() x cols.size(), row-major) of these rows and columns of a group's product, but not by
/// scales of blocks, and adds the bias. It applies the activation except in a ring, whose sums are not complete yet. A
/// gated activation leaves half as many columns, without gaps.
void apply_epilogue(const Gemm& gemm, Range rows, Range cols, float* sums, int group = 0);

}  // namespace tandem
