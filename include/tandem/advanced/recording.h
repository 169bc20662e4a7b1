#pragma once
/// Timelines measured on GPUs (docs/reference/timeline.md): what is set aside for them, and what they are worth.

#include <cstdint>
#include <vector>

#include "tandem/range.h"

namespace tandem {

/// Options of recording.
struct RecordOptions {
  /// Whether what kernels, copies and signals do can be recorded.
  bool on = false;
  /// Operations of one block in one launch for which there is room, 32 bytes each. Roles that run side by side take as
  /// much each as the one with the most operations.
  int operations = 1023;
  /// Room for records on each PE's GPU. Launches that do not fit any more run without being recorded.
  Size bytes = Size{512} << 20;
  /// Whether small kernels time each copy and each signal that a copy writes; else they are drawn between what was
  /// recorded beside them. They take 6 us a copy, and a place on an SM: a kernel on all of them that waits for a copy's
  /// signal never ends.
  bool time_copies = false;
};

/// The quality of a timeline.
struct RecordingInfo {
  Size operations = 0;       ///< that were recorded
  Size lost_operations = 0;  ///< for which their block had no room
  Size lost_work = 0;        ///< launches and copies for which there was no room, or no record before and behind them
  Size unmatched_waits = 0;  ///< waits that had to wait, where nothing that was recorded ended them

  /// The clock of a PE's GPU against that of PE 0, as compared before and after the run.
  struct Clock {
    std::int64_t offset_ns = 0;  ///< at the begin
    double error_ns = 0;         ///< of the alignment, where messages take equally long both ways
    double bound_ns = 0;         ///< the error cannot be larger: half of the fastest round trip
    double drift_ppm = 0;        ///< how much faster this clock runs than that of PE 0
  };
  std::vector<Clock> clocks;  ///< by PE

  /// A signal that ended a wait: from the one to the other by the aligned clocks. Not those that copies wrote, whose
  /// time is not recorded but concluded from the wait.
  struct Release {
    int from = 0;   ///< PE
    int to = 0;     ///< PE
    double us = 0;  ///< time from signal to wait
  };
  std::vector<Release> releases;  ///< in no order
};

}  // namespace tandem
