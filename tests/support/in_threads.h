#pragma once
/// Work on test data by several threads, where there is enough of it: hosts are slower than the GPUs they check.

#include <functional>

#include "tandem/range.h"

namespace tandem::test {

/// Calls `work(part)` for parts of `all`, which are at once as many as pay. `cost`: of one index, in elements that are
/// looked at. The calls must not touch the same data. Rethrows an exception of a call.
void in_threads(Range all, Size cost, const std::function<void(Range)>& work);

/// The sum of what `count(part)` gives.
Size count_in_threads(Range all, Size cost, const std::function<Size(Range)>& count);

}  // namespace tandem::test
