#pragma once
/// Adds up what several threads find out about a result.

#include <cmath>
#include <limits>
#include <mutex>

#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// One thread's part of a check.
struct Tally {
  Size checked = 0;
  Size wrong = 0;
  double max_error = 0;

  /// `error` is relative; one that is no number counts as infinite.
  void add(double error, bool is_wrong) {
    ++checked;
    wrong += is_wrong ? 1 : 0;
    if (!(error <= max_error)) max_error = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
  }
};

/// Collects tallies into a Check; an infinite error becomes none at all, since JSON has no word for it.
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
