#pragma once
/// Counts wrong elements over several threads.

#include <cmath>
#include <limits>
#include <mutex>

#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// The counts of one thread.
struct Tally {
  Size checked = 0;
  Size wrong = 0;
  double max_error = 0;

  /// `error` is relative; NaN counts as infinite.
  void add(double error, bool is_wrong) {
    ++checked;
    wrong += is_wrong ? 1 : 0;
    if (!(error <= max_error)) max_error = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
  }
};

/// A sum of counts for a Check. An infinite error removes the maximum, since JSON cannot express it.
class TallySum {
 public:
  explicit TallySum(Check& check) : check_(check) {}

  void add(const Tally& tally) {
    const std::lock_guard lock(mutex_);
    check_.checked += tally.checked;
    check_.wrong += tally.wrong;
    if (std::isinf(tally.max_error)) check_.max_error.reset();
    if (check_.max_error) check_.max_error = std::max(*check_.max_error, tally.max_error);
  }

 private:
  Check& check_;
  std::mutex mutex_;
};

}  // namespace tandem::cli
