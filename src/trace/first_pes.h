#pragma once
/// A timeline cut down to what a page can hold.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/timeline.h"
#include "trace/analysis.h"

namespace tandem::trace {

/// How many PEs, in order of number, have at most `max_spans` spans together; at least one.
int pes_that_fit(const Timeline& timeline, std::size_t max_spans);

/// The PEs below `pes` of a timeline, and what is left there of the whole timeline's critical `path`.
struct FirstPes {
  Timeline timeline;  ///< `pes` and the duration are those of the whole.
  std::vector<PathStep> path;
};
FirstPes first_pes(const Timeline& timeline, const std::vector<PathStep>& path, int pes);

}  // namespace tandem::trace
