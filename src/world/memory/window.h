#pragma once
/// Memory of the user's own, mapped for all PEs of a world of processes: that of an allocator whose memory other
/// processes can map, by file descriptors (torch's expandable segments, for example).

#include <memory>

#include "tandem/symm.h"
#include "world/pes/processes.h"

namespace tandem::world {

class Window {
 public:
  /// Collective: every PE gives memory of the same size, at the same place of allocations of the same sizes. Throws
  /// Unsupported, on all PEs, where one cannot share its memory, and InvalidArgument, on all too, where one gives none,
  /// or memory that `is_registered`, and where they do not fit together.
  Window(Processes& processes, void* pointer, Size bytes, bool is_registered);

  /// The same bytes at another address, there and on every peer. User and library do not touch them within one kernel
  /// by both addresses (CUDA programming guide, "Virtual aliasing support").
  Symm<std::byte> memory() const { return memory_; }

 private:
  std::unique_ptr<Segment> segment_;
  Symm<std::byte> memory_;
};

}  // namespace tandem::world
