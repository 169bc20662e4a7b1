#pragma once
/// A part of a timeline.

#include "tandem/timeline.h"

namespace tandem::trace {

/// Returns everything that lies within [begin, end]. Spans and arrows across either end are left out.
Timeline cut(const Timeline& whole, Time begin, Time end);

/// Removes lanes without spans.
Timeline without_empty_lanes(Timeline timeline);

}  // namespace tandem::trace
