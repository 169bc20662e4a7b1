#pragma once
/// Timelines measured on GPUs (docs/reference/timeline.md): what is set aside for them, and what they are worth.

#include <cstdint>
#include <vector>

#include "tandem/range.h"

namespace tandem {

/// Options of recording.
struct ProfileOptions {
  /// Whether kernels, copies and signals can be recorded.
  bool on = false;
  /// Room for the operations of one block in one launch, 32 bytes each. Concurrent roles each take as much as the role
  /// with the most operations.
  int operations = 1023;
  /// Room for records on each PE's GPU. Launches beyond it run without being recorded.
  Size bytes = Size{512} << 20;
  /// Whether small kernels time each copy and each signal that a copy writes. Without them these are drawn between the
  /// neighbouring records. The kernels add 6 us to a copy and need a place on an SM. A kernel that occupies all SMs and
  /// waits for a copy's signal would never end.
  bool time_copies = false;
};

/// The quality of a timeline.
struct ProfileInfo {
  Size operations = 0;       ///< recorded operations
  Size lost_operations = 0;  ///< operations for which their block had no room
  Size lost_work = 0;        ///< launches and copies without room, or without a record before and after them
  Size unmatched_waits = 0;  ///< blocked waits without a recorded signal that ended them

  /// The clock of a PE's GPU relative to that of PE 0, compared before and after the run.
  struct Clock {
    std::int64_t offset_ns = 0;  ///< at the beginning
    double error_ns = 0;         ///< error of the alignment if both directions take equally long
    double bound_ns = 0;         ///< upper bound of the error: half of the fastest round trip
    double drift_ppm = 0;        ///< how much faster this clock runs than that of PE 0
  };
  std::vector<Clock> clocks;  ///< by PE

  /// A signal that ended a wait: its time by the aligned clocks. Signals of copies are excluded, because their time is
  /// derived from the wait.
  struct Release {
    int from = 0;   ///< PE
    int to = 0;     ///< PE
    double us = 0;  ///< time from signal to wait
  };
  std::vector<Release> releases;  ///< in no order
};

}  // namespace tandem
