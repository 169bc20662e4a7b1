#pragma once
/// Memory of users who do not allocate from the symmetric heap.

#include <cuda.h>

#include <cstddef>

#include "tandem/range.h"

namespace tandem::cli {

/// Memory of one PE outside of the heap, on the current GPU.
class UserMemory {
 public:
  /// With `exportable` it is made by virtual memory management, so that it can be registered; otherwise by cudaMalloc.
  /// Throws RuntimeFailure.
  UserMemory(Size bytes, bool exportable);
  ~UserMemory();
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  std::byte* get() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  Size mapped_ = 0;  // 0: cudaMalloc
  CUmemGenericAllocationHandle handle_ = 0;
};

}  // namespace tandem::cli
