#pragma once
/// Memory of the user's own, mapped for all PEs of a world of processes: what an allocator built with CUDA virtual
/// memory management gave (torch's expandable segments, for example), exportable as file descriptors.

#include <memory>

#include "cuda/world/processes.h"
#include "tandem/symm.h"

namespace tandem::cuda {

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

}  // namespace tandem::cuda
