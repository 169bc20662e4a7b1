#pragma once
/// The memory of GPUs, by CUDA virtual memory management.

#include "world/device/memory.h"

namespace tandem::cuda {

class CudaMemory final : public world::DeviceMemory {
 public:
  Size granularity(int device, world::Handles handles) override;
  world::MemoryHandle create(int device, world::Handles handles, Size bytes) override;
  void release(world::MemoryHandle handle) noexcept override;
  std::byte* reserve(Size bytes) override;
  void give_back(std::byte* addresses, Size bytes) noexcept override;
  void map(std::byte* at, const world::Chunk& chunk) override;
  void unmap(std::byte* at, Size bytes) noexcept override;
  void allow(std::byte* at, Size bytes, const std::vector<int>& devices) override;
  bool reaches(int from, int to) override;
  void commit(std::byte*, Size) override {}  // a GPU's memory is there when it is made

  std::string lacks(int device, world::Handles handles) override;
  int export_descriptor(world::MemoryHandle handle) override;
  world::MemoryHandle import_descriptor(int descriptor, Size bytes) override;
  Bytes export_fabric(world::MemoryHandle handle) override;
  world::MemoryHandle import_fabric(View bytes) override;
  world::Holder holder_of(void* address) override;
};

}  // namespace tandem::cuda
