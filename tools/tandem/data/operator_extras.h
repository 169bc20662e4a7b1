#pragma once
/// Inputs of operators besides their matrices: a bias, the scales of fp8, and the inputs of a norm. They are functions
/// of the seed and of their place in the whole problem.

#include <vector>

#include "gemm/host/reference.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {

/// The values in one PE's memory. Collective to make.
class OperatorExtras {
 public:
  OperatorExtras(World& world, const OperatorRun& run, std::uint64_t seed);

  /// Writes the inputs of a run with `m` rows.
  void fill(Size m);
  /// Valid until the next call.
  OperatorCall call(Size m, const void* a, const void* b, void* c);

 private:
  Range rows_of_norm(Size m) const;

  World& world_;
  const OperatorRun& run_;
  std::uint64_t seed_;
  std::byte* bias_ = nullptr;
  std::byte *residual_ = nullptr, *norm_weight_ = nullptr, *sum_ = nullptr;
  float* norm_scales_ = nullptr;
  float *a_scale_ = nullptr, *b_scale_ = nullptr;
  const void *b_call_ = nullptr, *bias_call_ = nullptr;
  void* c_call_ = nullptr;
  const float* b_scale_call_ = nullptr;
};

std::vector<Size> all_of(Range range);
/// Returns whether a norm follows the sums of the operator, so that C has whole rows of it.
bool norms_sums(const OperatorRun& run);
/// Returns the elements of a normed row.
Size columns_of_norm(const OperatorRun& run);
/// Returns the same values for the reference, for these rows and columns of the result.
EpilogueValues epilogue_of(const OperatorRun& run, std::uint64_t seed, const std::vector<Size>& rows,
                           const std::vector<Size>& columns);

}  // namespace tandem::cli
