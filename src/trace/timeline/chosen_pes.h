#pragma once
/// A timeline cut down to the PEs that a page can hold.

#include <cstddef>
#include <limits>
#include <vector>

#include "tandem/timeline.h"
#include "trace/timeline/analysis.h"

namespace tandem::trace {

/// A page of so many spans (10 to 30 MB, by the number of arrows) still opens and draws at once in a browser, and a
/// trace of them in its viewer.
inline constexpr std::size_t kMaxSpans = 500'000;

/// The PEs to show, in order of number: all where they fit. Else those with most time on the critical path `path`, then
/// those that ended last, as long as they have at most `max_spans` spans together; at least one.
std::vector<int> chosen_pes(const Timeline& timeline, const std::vector<PathStep>& path, std::size_t max_spans,
                            std::size_t max_pes = std::numeric_limits<std::size_t>::max());

/// These PEs of a timeline, and what is left there of the whole timeline's critical path.
struct PartOfPes {
  Timeline timeline;  ///< `pes` and the duration are those of the whole.
  std::vector<PathStep> path;
};
PartOfPes part_of(const Timeline& timeline, const std::vector<PathStep>& path, const std::vector<int>& pes);

}  // namespace tandem::trace
