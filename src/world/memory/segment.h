#pragma once
/// The memory of all PEs of a world: one address range, PE p's part at p * stride, each part on its own PE's device.
/// Where PEs are processes, each of them maps all parts into a range of its own.

#include <cstddef>
#include <vector>

#include "world/memory/handles.h"

namespace tandem::world {

class Segment {
 public:
  /// How much of each PE's part is there, and what it may grow to; rounded up to the granularity of the hardware.
  struct Bytes {
    Size first = 0;
    Size most = 0;
  };

  /// For PEs that are threads: `numbers[p]` is PE p's device; several PEs may share one. Throws OutOfMemory (asked,
  /// free), Unsupported where two of the devices do not reach each other.
  Segment(Devices& devices, const std::vector<int>& numbers, const Bytes& bytes);
  /// For PEs that are processes, with memory that this makes: the part of this process on `device`. Collective over the
  /// session; `bytes` are the same on all.
  Segment(Devices& devices, bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device,
          const Bytes& bytes);
  /// The same with memory that is there, exportable, in as many chunks of the same sizes on all PEs (at most
  /// FdExchange::kMost). They are the segment's from here on. What one PE cannot map is an error of all.
  Segment(Devices& devices, bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device,
          const std::vector<Chunk>& chunks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Adds `bytes` (a multiple of the granularity) behind each PE's part; as it was where that fails. The two kinds as
  /// above. Throws OutOfMemory and what the device says; of processes on all.
  void grow(const std::vector<int>& numbers, Size bytes);
  void grow(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device, Size bytes);

  std::byte* base() const { return base_; }
  Size stride() const { return stride_; }
  int pe_of(const void* address) const {
    return static_cast<int>((static_cast<const std::byte*>(address) - base()) / stride_);
  }

 private:
  struct Mapping {
    std::byte* address;
    Chunk chunk;
  };

  void reserve();
  void make_all(const std::vector<int>& numbers, Size bytes);
  void share(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device,
             const std::vector<Chunk>& own);
  void map(int pe, const std::vector<Chunk>& chunks, const std::vector<int>& numbers);
  void unmap_down_to(std::size_t mappings);
  void release();

  Devices& devices_;
  std::byte* base_ = nullptr;
  Size stride_ = 0;
  Size there_ = 0;  // of each part
  int pes_ = 0;
  /// How its memory reaches other processes; memory of users does by descriptors.
  Handles handles_ = Handles::kDescriptors;
  std::vector<Mapping> mapped_;
};

}  // namespace tandem::world
