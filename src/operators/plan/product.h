#pragma once
/// The matrix products that operators are made of, with what is done to their sums.

#include "operators/plan/operator.h"

namespace tandem::ops {

/// all_gather_gemm: all rows with the i-th B. `a` is the caller's to set, and the scales of its rows.
Gemm gathered_product(const Settings& settings, const Team& team, const OperatorCall& call, std::size_t i);

/// gemm_reduce_scatter and gemm_all_reduce: what this PE adds to the sums of all rows; PE 0's part brings the bias, the
/// others' zeros, so that all take the same kernel. `c` is the caller's to set, and the activation where its GEMM
/// completes the sums.
Gemm partial_product(const Settings& settings, const Team& team, const OperatorCall& call);

/// Some of its rows, in `a` and in `c`, as a product that follows no shards.
Gemm rows_of(const Gemm& all, Range rows);

}  // namespace tandem::ops
