#pragma once
/// Examples of merge_heads with their results, for tests, for `tandem check` and for verified runs.
///
/// Some heads have keys on one PE only, some on none. With base 2 every element is exact, since weights are powers of
/// two.

#include <string>
#include <vector>

#include "tandem/layer/merge_heads.h"

namespace tandem::kernels {

/// The comparison of results with their expectation.
struct HeadsErrors {
  Size checked = 0;   ///< elements
  Size wrong = 0;     ///< elements
  std::string first;  ///< the first wrong one
};

class HeadsExample {
 public:
  /// `number` distinguishes the values of several calls.
  HeadsExample(const MergeHeadsOptions& options, int pes, Size batch, int number)
      : options_(options), pes_(pes), batch_(batch), number_(number) {}

  Size batch() const { return batch_; }
  /// Returns the buffers of PE `pe` as bytes.
  std::vector<std::byte> partials(int pe) const;
  std::vector<std::byte> lses(int pe) const;
  Size out_bytes(int pe) const;
  /// Compares the results of PE `pe`.
  HeadsErrors errors(int pe, const std::byte* out) const;

 private:
  /// `row` counts heads over the batch.
  float lse(int pe, Size row) const;
  float partial(int pe, Size row, Size i) const;
  float merged(Size row, Size i) const;
  Range heads_of(int pe) const;

  MergeHeadsOptions options_;
  int pes_;
  Size batch_;
  int number_;
};

}  // namespace tandem::kernels
