#pragma once
/// What one process has recorded on its GPU, as it hands it to the one that draws all.

#include <vector>

#include "base/serial.h"
#include "trace/gpu/gpu_recording.h"

namespace tandem::trace {

/// A buffer of one PE alone, whose name nobody else knows.
struct GpuBuffer {
  Size offset = 0;
  Size bytes = 0;
  Size element_bytes = 1;
  std::string name;
};

struct GpuPart {
  std::vector<GpuWork> work;  ///< `after` counts within the part
  Size lost_work = 0;
  /// Where this process sees the symmetric memory of all PEs: its addresses are others in another process.
  std::uint64_t base = 0;
  std::vector<GpuBuffer> buffers;

  Bytes encode() const;
  /// Throws BadMessage.
  static GpuPart decode(View bytes);
  /// Addresses as they are where the `bytes` of symmetric memory begin at `new_base`.
  void move_to(std::uint64_t new_base, Size bytes);
};

}  // namespace tandem::trace
