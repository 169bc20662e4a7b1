#pragma once
/// Copies of more bytes than a processor's caches hold.

#include "tandem/range.h"

namespace tandem::cpu {

/// A PE's work that copies at least so many bytes loses nothing if the caches keep none of them. On an Intel Xeon with
/// 2 MB of cache a core, a copy of 4 MB takes as long either way, and reading it afterwards longer.
inline constexpr Size kLongCopy = Size{8} << 20;

/// Copies the bytes past the caches, some pages at a time. So stores fetch nothing that they overwrite, and the
/// processor prefetches from each page. The stores are complete when it returns, for a release of this thread too. The
/// ranges do not overlap.
void copy_past_caches(void* to, const void* from, Size bytes);

}  // namespace tandem::cpu
