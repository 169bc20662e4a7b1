#pragma once
/// The memory of all PEs of a world: one address range, PE p's part at p * stride, each part on its own PE's device.
/// Where PEs are processes, each of them maps all parts into a range of its own.

#include <cstddef>
#include <vector>

#include "world/memory/handles.h"

namespace tandem::world {

class Segment {
 public:
  /// The most bytes of addresses of a segment. A process has 128 TiB of them on most computers.
  static constexpr Size kMostAddresses = Size{64} << 40;

  /// The first size of each PE's part, and its limit, both rounded up to the granularity of the hardware.
  struct Bytes {
    Size first = 0;
    Size most = 0;
    Size kept = 0;  ///< the beginning of the first that `suspend` keeps; a multiple of the granularity, or 0
  };

  /// Makes the memory of PEs that are threads: `numbers[p]` is PE p's device; several PEs may share one. Throws
  /// OutOfMemory (asked, free), InvalidArgument beyond kMostAddresses, or Unsupported if two of the devices do not
  /// reach each other.
  Segment(Devices& devices, const std::vector<int>& numbers, const Bytes& bytes);
  /// Makes the memory of PEs that are processes, with the part of this process on `device`. Collective over the world;
  /// `bytes` are the same on all PEs.
  Segment(Devices& devices, bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, const Sharing& sharing,
          int device, const Bytes& bytes);
  /// Takes existing exportable memory of PEs that are processes. All PEs give equally many chunks (at most
  /// FdExchange::kMost) of the same sizes. The segment owns them from here on. If one PE cannot map a chunk, all throw.
  Segment(Devices& devices, bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device,
          const std::vector<Chunk>& chunks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Adds `bytes` (a multiple of the granularity) behind each PE's part, for threads or for processes as above. Throws
  /// OutOfMemory and the device's errors, if PEs are processes on all of them. Then the segment stays as it was.
  void grow(const std::vector<int>& numbers, Size bytes);
  void grow(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device, Size bytes);

  /// Gives back the memory behind the part that is kept, while nothing uses it. Addresses stay.
  void suspend();
  /// Makes that memory anew, for processes as `grow`. If it throws, all of it is given back again.
  void resume(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, int device);
  bool is_suspended() const { return is_suspended_; }
  /// Returns the bytes of each part that a suspension gives back, or has given back.
  Size suspendable() const;

  std::byte* base() const { return base_; }
  Size stride() const { return stride_; }
  /// Returns the bytes of each part that have memory.
  Size bytes() const { return there_; }
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
  void add_stand_ins(std::vector<std::vector<Chunk>>& all, int device) const;
  void map(int pe, const std::vector<Chunk>& chunks, const std::vector<int>& numbers);
  void unmap_down_to(std::size_t mappings);
  void release();

  Devices& devices_;
  std::byte* base_ = nullptr;
  Size stride_ = 0;
  Size there_ = 0;  // bytes of each part that are mapped
  int pes_ = 0;
  Sharing sharing_;  // memory of users is imported by descriptors
  std::vector<Mapping> mapped_;
  Size kept_ = 0;
  std::vector<Size> grown_;      // the sizes of each part's chunks behind what is kept
  std::vector<Size> suspended_;  // those that were given back
  bool is_suspended_ = false;    // also where there was nothing to give back
};

}  // namespace tandem::world
