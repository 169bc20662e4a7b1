#pragma once
/// The records of one process's GPU, in the form in which it sends them to the process that draws the timeline.

#include <vector>

#include "base/serial.h"
#include "trace/gpu/gpu_profile.h"

namespace tandem::trace {

/// A buffer of one PE, whose name other PEs do not know.
struct GpuBuffer {
  Size offset = 0;
  Size bytes = 0;
  Size element_bytes = 1;
  std::string name;
};

struct GpuPart {
  std::vector<GpuWork> work;  ///< `after` counts within the part
  Size lost_work = 0;
  /// Base address of all PEs' symmetric memory in this process. Other processes map it elsewhere.
  std::uint64_t base = 0;
  std::vector<GpuBuffer> buffers;

  Bytes encode() const;
  /// Throws BadMessage.
  static GpuPart decode(View bytes);
  /// Moves the addresses to a process in which the `bytes` of symmetric memory start at `new_base`.
  void move_to(std::uint64_t new_base, Size bytes);
};

}  // namespace tandem::trace
