#pragma once
/// Examples of all_reduce_norm with their exact results, for tests, for `tandem check` and for verified runs.
///
/// Values are small integers whose sums are exact in any order. A row is antisymmetric around an integer, which is its
/// mean. Weights are powers of two. Fractions instead test the order of additions and the rounding of the sums.

#include <string>
#include <vector>

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

/// The comparison of results with their expectation.
struct NormErrors {
  Size checked = 0;   ///< elements
  Size wrong = 0;     ///< elements
  std::string first;  ///< the first wrong one
};

class NormExample {
 public:
  /// `number` distinguishes the values of several calls.
  NormExample(const AllReduceNormOptions& options, int pes, Size rows, int number, bool fractions = false);

  Size rows() const { return rows_; }
  /// Returns the elements of a buffer of PE `pe` as bytes of the options' type.
  std::vector<std::byte> in(int pe) const;
  std::vector<std::byte> residual(int pe) const;
  std::vector<std::byte> weight() const;
  std::vector<std::byte> bias() const;
  std::vector<std::byte> norm_bias() const;

  /// Sizes of the outputs of PE `pe`, in bytes; 0 for an output that the options do not ask for.
  Size out_bytes() const;
  Size sum_bytes(int pe) const;
  Size scales_bytes() const;
  /// Compares the results of PE `pe`. An output that the options do not ask for may be null.
  NormErrors errors(int pe, const std::byte* out, const std::byte* sum, const std::byte* scales) const;
  /// Does the same for outputs that hold only the PE's part of the rows.
  NormErrors errors_of_own(int pe, const std::byte* out, const std::byte* sum, const std::byte* scales) const;
  /// Compares the sums alone.
  NormErrors errors_of_sum(int pe, const std::byte* sum) const;
  /// Compares these columns of an output of all rows. One that is quantised is compared times its scales, in the type.
  NormErrors errors_of_columns(Range columns, const std::byte* out) const;

 private:
  struct Row {
    std::vector<float> sum, y;
    std::vector<float> scales;  // of each element
  };
  Row row(Size number) const;
  /// The sums of a row, which are rounded, and what the norm makes of them.
  void add_sums(Row& row, Size number) const;
  void add_norm(Row& row) const;
  void add_scales(Row& row) const;
  float scale_of(const std::byte* scales, Size row, Size column, float expected) const;
  /// Returns whether the value is the expected one, or with fractions near it.
  bool is(float got, float expected, float relative, float absolute) const;
  /// Compares row `row` of each output.
  void check_sum(NormErrors& errors, const Row& expected, Size row, const std::byte* sum) const;
  void check_out(NormErrors& errors, const Row& expected, Size row, const std::byte* out,
                 const std::byte* scales) const;
  void check_columns(NormErrors& errors, const Row& expected, Size row, Range columns, const std::byte* out) const;
  float rounded(float value) const;
  float element(const std::byte* buffer, Size i) const;
  float input(int pe, Size row, Size column) const;
  float residual_at(Size row, Size column) const;
  Range held(int pe) const;
  template <class F>
  std::vector<std::byte> bytes(Size rows, const F& value) const;

  AllReduceNormOptions options_;
  int pes_;
  Size rows_;
  int number_;
  bool fractions_;
};

}  // namespace tandem::kernels
