#pragma once
/// The allocator of the symmetric heap. It knows offsets, names and sizes only, so every backend uses it.
///
/// Each PE has a range of the same size, with a control part (signals, epochs, packets) and a data part. In each part
/// symmetric buffers grow from the bottom and a PE's own buffers from the top. Freed space is reused, lowest offset
/// first. The room behind the data part is for growth; only symmetric buffers use it.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tandem/range.h"

namespace tandem {

enum class MemoryKind { kControl, kData };

class HeapAllocator {
 public:
  /// Bytes of a PE's control part; less if the heap has less room.
  static constexpr Size kControlBytes = Size{256} << 20;
  /// The unit of growth: pages of GPU memory.
  static constexpr Size kGrain = Size{2} << 20;
  /// Bytes between buffers if the allocator is guarded.
  static constexpr Size kGuardBytes = 4096;

  /// `data_bytes` is the initial capacity of a PE's data part, `limit_bytes` the capacity after all growth if that is
  /// more. With `guarded` there is room between buffers, and freed memory is reused only if nothing else is left. A
  /// stray access then hits no other buffer.
  HeapAllocator(int pes, Size data_bytes, Size limit_bytes = 0, bool guarded = false,
                Size control_bytes = kControlBytes);

  MemoryKind kind_at(Size offset) const { return offset < control_bytes_ ? MemoryKind::kControl : MemoryKind::kData; }
  Size control_bytes() const { return control_bytes_; }

  int pes() const { return pes_; }
  /// Bytes of a PE's range at the beginning, and after all growth.
  Size range_bytes() const { return control_bytes_ + data_bytes_; }
  Size most_bytes() const { return control_bytes_ + limit_bytes_; }
  bool can_grow() const { return limit_bytes_ > data_bytes_; }

  /// Makes this PE's part of a collective allocation. The n-th call of every PE must ask for the same and returns the
  /// same offset. Throws InvalidArgument if the requests differ, OutOfMemory (asked, left) if the buffer does not fit.
  /// If another allocator holds other PEs' own buffers, `main_left` is the smallest room that any PE has left in the
  /// part.
  Size allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes,
                          Size main_left = kAnySize);
  /// Returns the growth that this PE's next collective allocation of `bytes` bytes of data needs. Returns 0 if it fits,
  /// if another PE has made it already, or if no growth would help.
  Size growth_for(int pe, Size bytes, Size main_left = kAnySize) const;
  /// Adds memory that the caller has made: a multiple of kGrain, within the limit.
  void grow(Size bytes) { grown_end_ += bytes; }
  /// Returns the number of collective allocations and frees so far.
  std::size_t symmetric_requests() const { return requests_.size(); }
  /// Allocates a buffer of one PE.
  Size allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);

  /// Makes this PE's part of a collective free, in one order with the allocations. The memory is free with the first
  /// PE's call, so all PEs must have reached it. Throws InvalidArgument if no buffer begins there, or if other PEs free
  /// another one.
  void free_symmetric(int pe, Size offset);
  /// Throws InvalidArgument if no buffer of this PE begins there.
  void free_local(int pe, Size offset);

  /// Marks a symmetric buffer as released by this PE; it is free when all PEs have released it. An allocator of all PEs
  /// frees it in `reclaim()`. An allocator of one PE is given the common set in `reclaim(offsets)`. Throws
  /// InvalidArgument if no buffer begins there.
  void release_symmetric(int pe, Size offset);
  const std::set<Size>& released(int pe) const { return released_[static_cast<std::size_t>(pe)]; }
  void reclaim();
  void reclaim(const std::set<Size>& offsets);
  /// Returns whether host programs need a barrier and `reclaim` before this PE's next collective allocation of `bytes`
  /// bytes, because it does not fit otherwise. The answer is the same on all PEs.
  bool needs_barrier(int pe, MemoryKind kind, Size bytes);

  /// Returns the bytes that a symmetric buffer of this kind can still take in the initial part.
  Size left(MemoryKind kind) const { return part(kind).top - part(kind).bottom; }
  /// Returns the size of the largest symmetric buffer of this kind that fits, with growth.
  Size largest(MemoryKind kind, Size main_left = kAnySize) const;

  /// Returns "arrived[3] on PE 2", for reports.
  std::string describe(int pe, Size offset) const;
  /// Returns the elements that the bytes touch: "inbox[16, 32) on PE 2". Outside of buffers it names the nearest one:
  /// "inbox + 400 of 400 bytes on PE 2", "inbox - 16 bytes on PE 2".
  std::string describe_range(int pe, Size offset, Size bytes) const;
  /// Returns the offsets of the buffer that contains the byte; an empty range at the byte if none does.
  Range buffer_range(int pe, Size offset) const;
  /// Returns the bytes from `offset` to the end of the buffer that contains it, or nothing if no buffer does.
  std::optional<Size> bytes_from(int pe, Size offset) const;
  /// Returns whether the bytes lie within one buffer. An empty range does so anywhere.
  bool within_buffer(int pe, Size offset, Size bytes) const {
    return bytes == 0 || bytes <= bytes_from(pe, offset).value_or(-1);
  }
  /// Returns whether the byte belonged to a buffer that was freed. Only a guarded allocator knows.
  bool was_freed(int pe, Size offset) const { return freed_at(pe, offset) != nullptr; }
  struct Buffer {
    std::string name;
    Size bytes = 0;
    Size element_bytes = 1;
  };
  using Buffers = std::map<Size, Buffer>;  // by offset
  const Buffers& local_buffers(int pe) const { return local_[static_cast<std::size_t>(pe)]; }
  /// Adds a buffer that another allocator holds for another PE. It is used for descriptions only.
  void know_local(int pe, Size offset, Buffer buffer) {
    local_[static_cast<std::size_t>(pe)][offset] = std::move(buffer);
  }

  /// Returns the name of the symmetric buffer that begins there. Throws InvalidArgument if none does.
  const std::string& name_at(Size offset) const;

 private:
  static constexpr Size kAnySize = Size{1} << 60;

  using Holes = std::map<Size, Size>;  // freed bytes by offset; neighbours are merged
  struct Part {
    Size bottom = 0;  // offsets in the range
    Size top = 0;     // the lowest of all PEs' own buffers
    Holes holes;
    std::vector<Size> local_top;     // by PE
    std::vector<Holes> local_holes;  // by PE
  };
  struct Request {
    MemoryKind kind;
    Size bytes;  ///< kFreed: a free; kReclaim: a barrier for released buffers
    std::string name;
    Size offset;
    Size left;  ///< room before the request
  };
  Part& part(MemoryKind kind) { return parts_[static_cast<int>(kind)]; }
  const Part& part(MemoryKind kind) const { return parts_[static_cast<int>(kind)]; }
  Size capacity(MemoryKind kind) const {
    return kind == MemoryKind::kControl ? control_bytes_ : data_bytes_ + grown_end_ - grown_begin();
  }
  Size grown_begin() const { return range_bytes(); }
  /// Returns the buffer that contains the byte, or null.
  const Buffers::value_type* buffer_at(int pe, Size offset) const;
  const Buffers::value_type* freed_at(int pe, Size offset) const;
  std::string describe_beside(int pe, Size offset) const;
  Size reserved_for(Size bytes) const;
  bool has_room(MemoryKind kind, Size reserved, Size main_left) const;
  Size take_symmetric(MemoryKind kind, Size reserved, Size main_left);
  Size take_local(MemoryKind kind, int pe, Size reserved);
  Request& next_request(int pe, const Request& asked);
  void give_back(Size offset);
  void make_hole(Size offset, Size reserved);
  void make_local_hole(int pe, Size offset, Size reserved);
  void use_freed_again();
  void use_freed_again(int pe);
  [[noreturn]] void exhausted(MemoryKind kind, int pe, const std::string& name, Size bytes, Size left) const;

  int pes_;
  Size control_bytes_;
  Size data_bytes_;
  Size limit_bytes_;
  Size grown_bottom_;  // end of symmetric buffers in the grown part
  Size grown_end_;     // end of the memory that exists
  Part parts_[2];
  std::vector<Request> requests_;          // collective allocations and frees in order
  std::vector<std::size_t> next_request_;  // by PE
  bool guarded_;
  Buffers symmetric_;
  std::vector<Buffers> local_;            // by PE
  Buffers freed_symmetric_;               // guarded only: freed and not reused yet
  std::vector<Buffers> freed_local_;      // by PE; likewise
  std::vector<std::set<Size>> released_;  // by PE: symmetric buffers that are not free yet
};

}  // namespace tandem
