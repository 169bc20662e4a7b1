#pragma once
/// When pieces of stream work began and ended.

#include <cstdint>
#include <vector>

#include "trace/gpu_recording.h"

namespace tandem::trace {

struct GpuWorkTime {
  bool known = false;
  std::int64_t begin = 0;  ///< nanoseconds of its GPU
  std::int64_t end = 0;
  /// Itself; for a copy right behind another one, with no record between the two, that one, which stands for both.
  std::size_t part_of = 0;
  Size bytes = 0;  ///< of all parts
  int parts = 1;
};

/// One entry for each of `work`, which is in the order in which each PE enqueued it. Kernels with records took from
/// their first block's begin to their last block's end. What has none took from the end of what was before it to the
/// begin of the first that had to wait for it.
std::vector<GpuWorkTime> work_times(const std::vector<GpuWork>& work);

}  // namespace tandem::trace
