#pragma once
/// Examples of exchange_heads with their results, for tests, for `tandem check` and for verified runs.

#include <string>
#include <vector>

#include "tandem/layer/exchange_heads.h"

namespace tandem::kernels {

class ExchangeExample {
 public:
  /// `number` distinguishes the values of several calls.
  ExchangeExample(const ExchangeHeadsOptions& options, int pes, Size rows, int number)
      : options_(options), pes_(pes), rows_(rows), number_(number) {}

  Size rows() const { return rows_; }
  int tensors() const { return static_cast<int>(options_.segments.size()); }
  /// Returns the bytes of the input of a tensor, and of its output.
  Size bytes(int tensor) const;
  std::vector<std::byte> in(int pe, int tensor) const;
  /// Returns the number of wrong elements in an output of PE `pe`.
  Size wrong(int pe, int tensor, const std::byte* out) const;

 private:
  Size segment_bytes(int tensor) const;
  /// Returns byte `i` of the segment of `row` that goes from one PE to another.
  std::byte value(int tensor, int from, int to, Size row, Size i) const;

  ExchangeHeadsOptions options_;
  int pes_;
  Size rows_;
  int number_;
};

/// A plan's runs, one behind the other in a stream.
struct ExchangeRuns {
  ExchangeHeadsOptions options;
  std::vector<Size> rows;
};
/// Makes a plan, runs it and returns the first error of this PE's results, or "". All PEs call it.
std::string wrong_of_runs(World& world, const ExchangeRuns& runs);

}  // namespace tandem::kernels
