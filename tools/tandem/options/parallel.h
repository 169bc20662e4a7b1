#pragma once
/// Parallel loops of the host, for filling and checking data and for many simulations.

#include <functional>

#include "tandem/range.h"

namespace tandem::cli {

/// Calls `body` for consecutive ranges of [0, count) with `piece` elements (the last may be shorter), on all cores. The
/// assignment to threads is arbitrary, so calls must write to different places. Simulations of a thread pass their
/// memory on to later ones. Rethrows the first error of a call.
void for_chunks(Size count, Size piece, const std::function<void(Range)>& body);

}  // namespace tandem::cli
