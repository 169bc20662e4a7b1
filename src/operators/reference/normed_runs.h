#pragma once
/// Runs of operators with a norm, with exact results (NormExample). Where the norm follows sums, A is a part of the
/// identity, so that partial sums are columns of B. normed_gather_runs.h has the others.

#include <string>
#include <vector>

#include "tandem/operators.h"

namespace tandem::ops {

struct NormedRuns {
  Operator op = Operator::kGemmAllReduce;
  OperatorOptions options;       ///< without k; all_gather_gemm: n is the depth, too
  std::vector<Size> rows;        ///< of each run, one behind the other in a stream
  bool sum_in_residual = false;  ///< whether the sum takes the place of the residual
  Size depth = 0;                ///< least depth of a PE's product
  bool keeps_gathered = true;    ///< all_gather_gemm: whether every other run keeps the gathered rows
  /// Each run has buffers of its own. Otherwise all have the same ones, and copies fill and save them in the stream.
  /// PEs that share a GPU also share its copies' queues, where a copy behind a waiting kernel may stop a copy of
  /// another PE.
  bool own_buffers = false;
};

/// Makes a plan, runs it in `main` and returns the first error of this PE's results, or "". All PEs call it.
std::string wrong_of_normed_runs(World& world, Stream& main, const NormedRuns& runs);

}  // namespace tandem::ops
