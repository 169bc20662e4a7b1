#pragma once
/// What is done to the sums of a GEMM before they are stored: bias and activation.

#include "tandem/gemm.h"

namespace tandem {

/// Throws InvalidArgument where partial sums would get a bias or an activation.
void check_finish(const Gemm& gemm);

/// The activation's definition.
float activate(Activation activation, float value);

/// Adds the bias of columns `cols` to `sums` (`rows` x cols.size(), row-major) and applies the activation.
void finish_sums(const Gemm& gemm, Size rows, Range cols, float* sums);

}  // namespace tandem
