#pragma once
/// Examples of all_reduce_norm with their exact results, for tests, for `tandem check` and for verified runs.
///
/// Values are small integers whose sums are exact in any order: a row is antisymmetric around an integer, which is its
/// mean, and weights are powers of two. Fractions instead test the order of additions and the rounding of the sums.

#include <string>
#include <vector>

#include "tandem/all_reduce_norm.h"

namespace tandem::kernels {

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
  /// Returns the first error of the results of PE `pe`, or "".
  std::string wrong(int pe, const std::byte* out, const std::byte* sum, const std::byte* scales) const;

 private:
  struct Row {
    std::vector<float> sum, y;
    std::vector<float> scales;  // of each element
  };
  Row row(Size number) const;
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
