#pragma once
/// Counts, half-open index ranges, and the library's way to divide work.

#include <cstdint>

#include "tandem/impl/config.h"

namespace tandem {

/// Element counts and offsets; 64-bit everywhere.
using Size = std::int64_t;

/// The indices [begin, end).
struct Range {
  Size begin = 0;  ///< the first index
  Size end = 0;    ///< one past the last index

  /// Returns the number of indices.
  TANDEM_DEVICE constexpr Size size() const { return end - begin; }
  /// Returns whether there is no index.
  TANDEM_DEVICE constexpr bool empty() const { return end <= begin; }
  TANDEM_DEVICE friend constexpr bool operator==(Range a, Range b) { return a.begin == b.begin && a.end == b.end; }
};

/// Returns a / b, rounded up. b is positive, and a is not negative.
TANDEM_DEVICE constexpr Size ceil_div(Size a, Size b) { return (a + b - 1) / b; }
/// Returns the least multiple of `b` that is at least `a`.
TANDEM_DEVICE constexpr Size round_up(Size a, Size b) { return ceil_div(a, b) * b; }
/// Returns the smaller number; for device code, which has no std::min.
TANDEM_DEVICE constexpr Size min(Size a, Size b) { return a < b ? a : b; }
/// Returns the larger number.
TANDEM_DEVICE constexpr Size max(Size a, Size b) { return a < b ? b : a; }

/// A range cut into `parts` consecutive pieces. The last ones may be shorter or empty.
///
/// All pieces before the last non-empty one have the same size, a multiple of `align`. 16-byte accesses thus stay
/// aligned, and every PE computes the same cut from the same numbers.
class Split {
 public:
  /// Cuts `whole` into `parts` pieces. `parts` and `align` are at least 1.
  TANDEM_DEVICE constexpr Split(Range whole, Size parts, Size align = 1)
      : whole_(whole), parts_(parts), step_(round_up(ceil_div(whole.size(), parts), align)) {}

  /// Returns the range of piece `part`, from 0 to parts() - 1.
  TANDEM_DEVICE constexpr Range operator[](Size part) const {
    const Size begin = min(whole_.begin + part * step_, whole_.end);
    return {begin, min(begin + step_, whole_.end)};
  }
  /// Returns the number of pieces, empty ones included.
  TANDEM_DEVICE constexpr Size parts() const { return parts_; }
  /// Returns the size of every piece before the last non-empty one.
  TANDEM_DEVICE constexpr Size step() const { return step_; }
  /// Returns the index of the piece that holds index `i` of the range.
  TANDEM_DEVICE constexpr Size part_of(Size i) const { return step_ == 0 ? 0 : (i - whole_.begin) / step_; }

 private:
  Range whole_;
  Size parts_;
  Size step_;
};

/// Returns the cut of `whole` into `parts` pieces.
TANDEM_DEVICE constexpr Split split(Range whole, Size parts, Size align = 1) { return {whole, parts, align}; }
/// Returns the cut of [0, count).
TANDEM_DEVICE constexpr Split split(Size count, Size parts, Size align = 1) { return {Range{0, count}, parts, align}; }

}  // namespace tandem
