#pragma once
/// Who holds which part of the symmetric heap: offsets, names and sizes, the same book for every backend.
///
/// Each PE has a range of the same size, with a control part (signals, epochs, packets) and a data part. Within a part
/// symmetric buffers grow from the bottom, a PE's own buffers from the top, and what was freed is used again, lowest
/// offset first. Behind the data part lies room for growth, for symmetric buffers alone.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tandem/range.h"

namespace tandem {

enum class MemoryKind { kControl, kData };

class HeapBook {
 public:
  /// Bytes of a PE's control part, unless there is room for less.
  static constexpr Size kControlBytes = Size{256} << 20;
  /// The heap grows by multiples of this: pages of GPU memory.
  static constexpr Size kGrain = Size{2} << 20;
  /// Bytes between buffers of a guarded book.
  static constexpr Size kGuardBytes = 4096;

  /// `data_bytes`: capacity of a PE's data part at the beginning; `limit_bytes`: what it may grow to, where that is
  /// more. A guarded book leaves room between buffers, and gives memory that was freed to a new buffer only where
  /// nothing else is left: a stray access then hits no other buffer.
  HeapBook(int pes, Size data_bytes, Size limit_bytes = 0, bool guarded = false, Size control_bytes = kControlBytes);

  MemoryKind kind_at(Size offset) const { return offset < control_bytes_ ? MemoryKind::kControl : MemoryKind::kData; }
  Size control_bytes() const { return control_bytes_; }

  int pes() const { return pes_; }
  /// Bytes of a PE's range that are there at the beginning, and with all growth.
  Size range_bytes() const { return control_bytes_ + data_bytes_; }
  Size most_bytes() const { return control_bytes_ + limit_bytes_; }
  bool can_grow() const { return limit_bytes_ > data_bytes_; }

  /// This PE's part in a collective allocation: the n-th call of every PE gives the same offset and must ask for the
  /// same. Throws InvalidArgument where it does not, OutOfMemory (asked, left) where it does not fit. Where another
  /// book holds other PEs' own buffers, `main_left` is the least that any PE's has left in the part.
  Size allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes,
                          Size main_left = kAnySize);
  /// By how much the heap has to grow before this PE's next collective allocation, if that is one of so many bytes of
  /// data; 0: it fits, another PE has made it already, or no growth would help.
  Size growth_for(int pe, Size bytes, Size main_left = kAnySize) const;
  /// The memory for it is there. Bytes: a multiple of kGrain, within the limit.
  void grow(Size bytes) { grown_end_ += bytes; }
  /// Collective allocations and frees so far.
  std::size_t symmetric_requests() const { return requests_.size(); }
  /// A buffer of one PE alone.
  Size allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);

  /// This PE's part in a collective free, one of the same order as allocations. The memory is free with the first PE's
  /// call: all have to have come. Throws InvalidArgument for what is no buffer's begin, or another one than other PEs'.
  void free_symmetric(int pe, Size offset);
  /// Throws InvalidArgument for what is no such buffer's begin.
  void free_local(int pe, Size offset);

  /// This PE is through with a symmetric buffer, which is free when all are: the book of all PEs frees it in `reclaim`,
  /// the book of one PE where it is told what all have released. Throws InvalidArgument for what is no buffer's begin.
  void release_symmetric(int pe, Size offset);
  const std::set<Size>& released(int pe) const { return released_[static_cast<std::size_t>(pe)]; }
  void reclaim();
  void reclaim(const std::set<Size>& offsets);
  /// Whether the host programs have to meet, and then to `reclaim`, before this PE's next collective allocation, if
  /// that is one of so many bytes: it does not fit without. All PEs get the same answer.
  bool has_to_meet(int pe, MemoryKind kind, Size bytes);

  /// Bytes that a symmetric buffer of this kind may still take where the part was at the beginning.
  Size left(MemoryKind kind) const { return part(kind).top - part(kind).bottom; }
  /// The largest symmetric buffer of this kind that still fits, growth included.
  Size largest(MemoryKind kind, Size main_left = kAnySize) const;

  /// "arrived[3] on PE 2", for reports.
  std::string describe(int pe, Size offset) const;
  /// "inbox[16, 32) on PE 2": the elements that the bytes touch. Beside buffers the nearest one: "inbox + 400 of 400
  /// bytes on PE 2", "inbox - 16 bytes on PE 2".
  std::string describe_range(int pe, Size offset, Size bytes) const;
  /// Bytes from there to the end of the buffer that holds the byte there; nothing where none does.
  std::optional<Size> bytes_from(int pe, Size offset) const;
  /// Whether the bytes lie within one buffer; no bytes do anywhere.
  bool within_buffer(int pe, Size offset, Size bytes) const {
    return bytes == 0 || bytes <= bytes_from(pe, offset).value_or(-1);
  }
  /// Whether the byte there was a buffer's that was freed. Only a guarded book knows.
  bool was_freed(int pe, Size offset) const { return freed_at(pe, offset) != nullptr; }
  struct Buffer {
    std::string name;
    Size bytes = 0;
    Size element_bytes = 1;
  };
  using Buffers = std::map<Size, Buffer>;  // by offset
  const Buffers& local_buffers(int pe) const { return local_[static_cast<std::size_t>(pe)]; }
  /// For descriptions alone, a buffer that another book holds for another PE.
  void know_local(int pe, Size offset, Buffer buffer) {
    local_[static_cast<std::size_t>(pe)][offset] = std::move(buffer);
  }

  /// The name of the symmetric buffer that begins there. Throws InvalidArgument where none does.
  const std::string& name_at(Size offset) const;

 private:
  static constexpr Size kAnySize = Size{1} << 60;

  using Holes = std::map<Size, Size>;  // bytes that were freed, by offset; neighbours are one hole
  struct Part {
    Size bottom = 0;  // offsets in the range
    Size top = 0;     // the lowest of all PEs' own buffers
    Holes holes;
    std::vector<Size> local_top;     // by PE
    std::vector<Holes> local_holes;  // by PE
  };
  struct Request {
    MemoryKind kind;
    Size bytes;  ///< kFreed: a free; kMeeting: for what PEs have released
    std::string name;
    Size offset;
    Size left;  ///< before it
  };
  Part& part(MemoryKind kind) { return parts_[static_cast<int>(kind)]; }
  const Part& part(MemoryKind kind) const { return parts_[static_cast<int>(kind)]; }
  Size capacity(MemoryKind kind) const {
    return kind == MemoryKind::kControl ? control_bytes_ : data_bytes_ + grown_end_ - grown_begin();
  }
  Size grown_begin() const { return range_bytes(); }
  /// The buffer that holds the byte there; null where none does.
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
  Size grown_bottom_;  // symmetric buffers behind the part as it was at the beginning
  Size grown_end_;     // what is there
  Part parts_[2];
  std::vector<Request> requests_;          // collective allocations and frees in order
  std::vector<std::size_t> next_request_;  // by PE
  bool guarded_;
  Buffers symmetric_;
  std::vector<Buffers> local_;            // by PE
  Buffers freed_symmetric_;               // of a guarded book: what is not used again yet
  std::vector<Buffers> freed_local_;      // by PE; likewise
  std::vector<std::set<Size>> released_;  // by PE: symmetric buffers that are not free yet
};

}  // namespace tandem
