#pragma once
/// When pieces of stream work began and ended.

#include <vector>

#include "trace/gpu/gpu_recording.h"

namespace tandem::trace {

struct GpuWorkTime {
  bool known = false;
  Time begin = 0;
  Time end = 0;
};

/// One entry for each piece of work. Kernels with records took from their first block's begin to their last block's
/// end.
///
/// What has none (copies, and signals that copies write) comes in chains, one behind the other in a stream. A chain
/// took from the end of what was before it to the begin of the first that had to wait for it; its pieces share that
/// time as they share the bytes, each no longer than until a wait for its signal ended, or something that had to wait
/// for it began.
std::vector<GpuWorkTime> work_times(const GpuRecording& recording);

}  // namespace tandem::trace
