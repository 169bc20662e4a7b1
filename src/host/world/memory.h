#pragma once
/// Memory of PEs on CPUs: unnamed files in shared memory, of which nothing remains after the process has ended.

#include <map>
#include <mutex>

#include "world/device/memory.h"

namespace tandem::host {

/// Shared memory whose handles are file descriptors.
class HostMemory : public world::DeviceMemory {
 public:
  Size granularity(int device, world::Handles handles) override;
  world::MemoryHandle create(int device, world::Handles handles, Size bytes) override;
  void release(world::MemoryHandle handle) noexcept override;
  std::byte* reserve(Size bytes) override;
  void give_back(std::byte* addresses, Size bytes) noexcept override;
  void map(std::byte* at, const world::Chunk& chunk) override;
  void unmap(std::byte* at, Size bytes) noexcept override;
  void allow(std::byte*, Size, const std::vector<int>&) override {}  // every CPU reads and writes all
  bool reaches(int, int) override { return true; }
  /// Throws OutOfMemory if memory is short: the system has allocated none yet, and kills a process that writes more
  /// than there is.
  void commit(std::byte* at, Size bytes) override;

  std::string lacks(int device, world::Handles handles) override;
  int export_descriptor(world::MemoryHandle handle) override;
  world::MemoryHandle import_descriptor(int descriptor, Size bytes) override;
  Bytes export_fabric(world::MemoryHandle handle) override;
  world::MemoryHandle import_fabric(View bytes) override;
  world::Holder holder_of(void* address) override;

 private:
  std::mutex mutex_;
  std::map<std::byte*, world::Chunk> mapped_;
};

}  // namespace tandem::host
