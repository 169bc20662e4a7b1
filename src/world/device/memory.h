#pragma once
/// Physical memory of devices, and the addresses at which processes map it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/serial.h"
#include "tandem/range.h"

namespace tandem::world {

/// How memory is handed from process to process.
enum class Handles {
  kNone,         ///< it stays within the process
  kDescriptors,  ///< file descriptors over local sockets
  kFabric        ///< bytes from which any process with the right permission can map the memory
};

using MemoryHandle = std::uint64_t;

/// A piece of physical memory, whose owner releases the handle.
struct Chunk {
  MemoryHandle handle = 0;
  Size bytes = 0;
};

/// The allocation that holds an address.
struct Holder {
  Chunk chunk;  ///< retained if `problem` is empty or `is_retained`
  std::byte* base = nullptr;
  bool is_retained = false;
  std::string problem;  ///< why other processes cannot map it; empty: they can
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Returns the unit of sizes: every size is a multiple of it.
  virtual Size granularity(int device, Handles handles) = 0;
  /// Throws OutOfMemory (asked, left).
  virtual MemoryHandle create(int device, Handles handles, Size bytes) = 0;
  virtual void release(MemoryHandle handle) noexcept = 0;
  /// Reserves addresses without memory.
  virtual std::byte* reserve(Size bytes) = 0;
  virtual void give_back(std::byte* addresses, Size bytes) noexcept = 0;
  virtual void map(std::byte* at, const Chunk& chunk) = 0;
  virtual void unmap(std::byte* at, Size bytes) noexcept = 0;
  /// Lets devices read and write the memory that is mapped there.
  virtual void allow(std::byte* at, Size bytes, const std::vector<int>& devices) = 0;
  /// Returns whether the device `from` can read and write the memory of the device `to`.
  virtual bool reaches(int from, int to) = 0;
  /// Throws OutOfMemory if the device has no room for the contents of mapped memory, which are written next.
  virtual void commit(std::byte* at, Size bytes) = 0;

  /// Returns why the device has no memory with these handles; empty if it has. The caller checks TANDEM_HANDLES.
  virtual std::string lacks(int device, Handles handles) = 0;
  virtual int export_descriptor(MemoryHandle handle) = 0;
  /// Imports memory; the caller keeps the descriptor. Throws RuntimeFailure if it is not memory of so many bytes.
  virtual MemoryHandle import_descriptor(int descriptor, Size bytes) = 0;
  virtual Bytes export_fabric(MemoryHandle handle) = 0;
  virtual MemoryHandle import_fabric(View bytes) = 0;
  virtual Holder holder_of(void* address) = 0;
};

}  // namespace tandem::world
