#pragma once
/// The user's own memory, mapped for all PEs of a world of processes. Its allocator must let other processes map it by
/// file descriptors, as torch's expandable segments do.

#include <memory>

#include "tandem/symm.h"
#include "world/pes/processes.h"

namespace tandem::world {

class Window {
 public:
  /// Maps the memory of all PEs. Collective: every PE gives memory of the same size, at the same place of allocations
  /// of the same sizes. All PEs throw Unsupported if one cannot share its memory. All throw InvalidArgument if one
  /// gives none or memory that `is_registered`, or if the PEs' memory does not match.
  Window(Processes& processes, void* pointer, Size bytes, bool is_registered);

  /// Returns the same bytes at another address, with those of every peer. User and library must not access them within
  /// one kernel by both addresses (CUDA programming guide, "Virtual aliasing support").
  Symm<std::byte> memory() const { return memory_; }

 private:
  std::unique_ptr<Segment> segment_;
  Symm<std::byte> memory_;
};

}  // namespace tandem::world
