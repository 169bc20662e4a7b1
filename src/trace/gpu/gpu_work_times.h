#pragma once
/// Begin and end of the items of stream work.

#include <vector>

#include "trace/gpu/gpu_profile.h"

namespace tandem::trace {

struct GpuWorkTime {
  bool known = false;
  Time begin = 0;
  Time end = 0;
};

/// Returns one entry for each item. A kernel with records lasts from its first block's begin to its last block's end.
///
/// Copies, and signals that copies write, have no records. They form chains, one after the other in a stream. A chain
/// lasts from the end of its predecessor to the begin of the first item that waited for it. Its items share that time
/// in proportion to their bytes. Each ends at the latest when a wait for its signal ended, or when a dependent item
/// began.
std::vector<GpuWorkTime> work_times(const GpuProfile& profile);

}  // namespace tandem::trace
