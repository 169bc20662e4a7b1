#pragma once
/// A part of a timeline.

#include "tandem/timeline.h"

namespace tandem::trace {

/// What happened within [begin, end]; what crosses either end is left out.
Timeline cut(const Timeline& whole, Time begin, Time end);

/// The same without lanes on which nothing stands.
Timeline without_empty_lanes(Timeline timeline);

}  // namespace tandem::trace
