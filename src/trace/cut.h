#pragma once
/// A part of a timeline.

#include "trace/timeline.h"

namespace tandem::trace {

/// What happened within [begin, end]; what crosses either end is left out.
Timeline cut(const Timeline& whole, Time begin, Time end);

}  // namespace tandem::trace
