#pragma once
/// The GEMM descriptors of operators, with their epilogues.

#include "operators/plan/operator.h"

namespace tandem::ops {

/// all_gather_gemm: all rows with the i-th B. The caller sets `a` and the scales of its rows.
Gemm gathered_gemm(const Settings& settings, const Team& team, const OperatorCall& call, std::size_t i);

/// gemm_reduce_scatter and gemm_all_reduce: this PE's contribution to the sums of all rows. PE 0 passes the bias and
/// the others zeros, so that all use the same kernel. The caller sets the destination, and the activation if its GEMM
/// completes the sums.
Gemm partial_gemm(const Settings& settings, const Team& team, const OperatorCall& call);

/// Returns a descriptor of some of its rows, in `a` and in a local C, which ignores shards and notifies no PE.
Gemm rows_of(const Gemm& all, Range rows);

}  // namespace tandem::ops
