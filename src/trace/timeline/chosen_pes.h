#pragma once
/// A timeline cut down to the PEs that a page can hold.

#include <cstddef>
#include <limits>
#include <vector>

#include "tandem/timeline.h"
#include "trace/timeline/analysis.h"

namespace tandem::trace {

/// The number of spans of a page (10 to 30 MB, depending on the arrows) that a browser still opens and draws at once.
/// The limit holds for a trace in its viewer, too.
inline constexpr std::size_t kMaxSpans = 500'000;

/// Returns the PEs to show, in ascending order: all PEs if they fit. Otherwise it takes those with the most time on the
/// critical path `path`, then those that ended last. Together they have at most `max_spans` spans, but at least one PE
/// is taken.
std::vector<int> chosen_pes(const Timeline& timeline, const std::vector<PathStep>& path, std::size_t max_spans,
                            std::size_t max_pes = std::numeric_limits<std::size_t>::max());

/// A timeline of some PEs, and the part of the whole timeline's critical path that remains.
struct PartOfPes {
  Timeline timeline;  ///< `pes` and the duration are those of the whole.
  std::vector<PathStep> path;
};
PartOfPes part_of(const Timeline& timeline, const std::vector<PathStep>& path, const std::vector<int>& pes);

}  // namespace tandem::trace
