#pragma once
/// The reference of operators whose sums a norm follows (OperatorOptions::norm), in f64.

#include <vector>

#include "gemm/host/reference.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {

/// Inputs of the norm, as functions of the seed and of the place: rows of the residual, and the weight.
std::vector<float> residual_row(const OperatorRun& run, std::uint64_t seed, Size row);
std::vector<float> norm_weight(const OperatorRun& run, std::uint64_t seed);

/// Rows of the global problem: A (rows x k), all of B (n x k, or k x n), and the rows of C. A and B are of `type`.
struct NormedRows {
  std::vector<Size> rows;
  DType type = DType::kBF16;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  BLayout b_layout = BLayout::kNxK;
  const std::byte* c = nullptr;
};

/// Returns the allowed error of an element. `tolerance` is that of the sums; the sum with the residual, the norm and
/// the output are rounded, too.
double normed_tolerance(const OperatorRun& run, double tolerance);

/// Compares C with the reference. The error is measured against the typical size of a normed sum. A quantised C is
/// compared with the quotient of the reference and its own scale.
Mismatch check_normed(const OperatorRun& run, std::uint64_t seed, const NormedRows& given, double tolerance);

}  // namespace tandem::cli
