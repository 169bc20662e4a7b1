#pragma once
/// Counts wrong elements over several threads.

#include <cmath>
#include <limits>
#include <mutex>

#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// The counts of one thread.
struct Verification {
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
class VerificationSum {
 public:
  explicit VerificationSum(Check& check) : check_(check) {}

  void add(const Verification& verification) {
    const std::lock_guard lock(mutex_);
    check_.checked += verification.checked;
    check_.wrong += verification.wrong;
    if (std::isinf(verification.max_error)) check_.max_error.reset();
    if (check_.max_error) check_.max_error = std::max(*check_.max_error, verification.max_error);
  }

 private:
  Check& check_;
  std::mutex mutex_;
};

}  // namespace tandem::cli
