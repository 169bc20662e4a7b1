#pragma once
/// The reference of operators with a norm (OperatorOptions::norm).

#include <vector>

#include "gemm/host/reference.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {

/// Inputs of the norm, as functions of the seed and of the place: rows of the residual, and the weight.
std::vector<float> residual_row(const OperatorRun& run, std::uint64_t seed, Size row);
std::vector<float> norm_weight(const OperatorRun& run, std::uint64_t seed);

/// all_gather_gemm: returns rows of A behind their norm, before they are rounded. `a` has these rows of k elements.
std::vector<float> normed_rows(const OperatorRun& run, std::uint64_t seed, const std::vector<Size>& rows,
                               const std::byte* a);
/// Returns the values in `type`, and values of `type` in f32.
std::vector<std::byte> rounded(DType type, const std::vector<float>& values);
std::vector<float> widened(DType type, const std::byte* values, Size count);

/// Rows of the global problem: A (rows x k), all of B (n x k, or k x n), and the rows of C. A and B are of `type`.
struct NormedRows {
  std::vector<Size> rows;
  DType type = DType::kBF16;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  BLayout b_layout = BLayout::kNxK;
  const std::byte* c = nullptr;
};

/// Returns the allowed error of an element. `tolerance` is that without a norm. The sum with the residual, the norm and
/// the output are rounded, too. A that the norm quantises is compared with rows that are not.
double normed_tolerance(const OperatorRun& run, double tolerance);

/// Compares C, behind the norm of its sums, with a reference in f64. The error is measured against the typical size of
/// a normed sum. A quantised C is compared with the quotient of the reference and its own scale.
Mismatch check_normed(const OperatorRun& run, std::uint64_t seed, const NormedRows& given, double tolerance);

}  // namespace tandem::cli
