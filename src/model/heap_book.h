#pragma once
/// Who holds which part of the symmetric heap: offsets, names and sizes, the same book for every backend.
///
/// Each PE has a range of the same size, with a control part (signals, epochs, packets) and a data part. Within a part
/// symmetric buffers grow from the bottom, a PE's own buffers from the top.

#include <map>
#include <string>
#include <vector>

#include "tandem/range.h"

namespace tandem {

enum class MemoryKind { kControl, kData };

class HeapBook {
 public:
  /// Bytes of a PE's control part.
  static constexpr Size kControlBytes = Size{256} << 20;

  /// `data_bytes`: capacity of a PE's data part.
  HeapBook(int pes, Size data_bytes);

  int pes() const { return pes_; }
  /// Bytes of a PE's range.
  Size range_bytes() const { return kControlBytes + data_bytes_; }

  /// This PE's part in a collective allocation: the n-th call of every PE gives the same offset and must ask for the
  /// same. Throws InvalidArgument where it does not, OutOfMemory (asked, left) where it does not fit.
  Size allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);
  /// Collective allocations so far.
  std::size_t symmetric_allocations() const { return requests_.size(); }
  /// A buffer of one PE alone.
  Size allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);

  /// Bytes that a symmetric buffer of this kind may still take.
  Size left(MemoryKind kind) const {
    return parts_[static_cast<int>(kind)].top - parts_[static_cast<int>(kind)].bottom;
  }

  /// "arrived[3] on PE 2", for reports.
  std::string describe(int pe, Size offset) const;
  /// "inbox[16, 32) on PE 2": the elements that the bytes touch.
  std::string describe_range(int pe, Size offset, Size bytes) const;

 private:
  struct Part {
    Size bottom = 0;
    Size top = 0;  // the lowest of all PEs' own buffers
  };
  struct Request {
    MemoryKind kind;
    Size bytes;
    std::string name;
    Size offset;
    Size left;  ///< before it
  };
  struct Buffer {
    std::string name;
    Size bytes = 0;
    Size element_bytes = 1;
  };
  using Buffers = std::map<Size, Buffer>;  // by offset

  Size capacity(MemoryKind kind) const { return kind == MemoryKind::kControl ? kControlBytes : data_bytes_; }
  static Size begin_of(MemoryKind kind) { return kind == MemoryKind::kControl ? 0 : kControlBytes; }
  [[noreturn]] void exhausted(MemoryKind kind, int pe, const std::string& name, Size bytes, Size left) const;

  int pes_;
  Size data_bytes_;
  Part parts_[2];
  std::vector<Size> local_top_[2];         // by PE
  std::vector<Request> requests_;          // collective allocations in order
  std::vector<std::size_t> next_request_;  // by PE
  Buffers symmetric_;
  std::vector<Buffers> local_;  // by PE
};

}  // namespace tandem
