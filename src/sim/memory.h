#pragma once
/// The memory of all simulated PEs: one address range each, at a constant stride, with what was allocated where.
///
/// Every range has a control part (signals, epochs, packets: always real) and a data part (not there in phantom mode).
/// Within a part symmetric buffers grow from the bottom, a PE's own buffers from the top.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tandem/range.h"

namespace tandem::sim {

enum class MemoryKind { kControl, kData };

class Memory {
 public:
  /// `data_bytes`: capacity of a PE's data part. Throws OutOfMemory where the address space is not to be had.
  Memory(int pes, bool phantom, Size data_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// This PE's part in a collective allocation: the n-th call of every PE gives the same offset and must ask for the same.
  /// Returns PE 0's address. Contents: zeros in the control part, a pattern that is NaN in every float type in the data part.
  std::byte* allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);
  /// A buffer of one PE alone.
  std::byte* allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);
  /// Gives all buffers back; nothing may use them any more.
  void clear();

  int pes() const { return pes_; }
  Size stride() const { return stride_; }
  bool owns(const void* address) const;
  /// Whose memory it is; the address must be `owns`.
  int pe_of(const void* address) const { return static_cast<int>((as_byte(address) - base_) / stride_); }
  /// Offset from the begin of its PE's range: equal for the copies of a symmetric buffer.
  Size offset_of(const void* address) const { return (as_byte(address) - base_) % stride_; }
  bool backed(const void* address) const {
    return !phantom_ || !owns(address) || offset_of(address) < kControlBytes;
  }
  /// "arrived[3] on PE 2", for reports.
  std::string describe(const void* address) const;

  /// What a buffer is called and where it begins, by its address on any PE; name empty where there is none.
  struct Buffer {
    std::string name;
    Size offset = 0;  // from the begin of the PE's range
    Size bytes = 0;
    Size element_bytes = 1;
  };
  Buffer buffer_of(const void* address) const;

 private:
  static constexpr Size kControlBytes = Size{64} << 20;

  struct Part {
    Size bottom = 0;
    Size top = 0;  // of symmetric buffers: the lowest of all PEs' own
  };
  struct Request {
    MemoryKind kind;
    Size bytes;
    std::string name;
    Size offset;
  };

  static const std::byte* as_byte(const void* address) { return static_cast<const std::byte*>(address); }
  Size capacity(MemoryKind kind) const { return kind == MemoryKind::kControl ? kControlBytes : data_bytes_; }
  Size base_of(MemoryKind kind) const { return kind == MemoryKind::kControl ? 0 : kControlBytes; }
  void fill(int pe, MemoryKind kind, Size offset, Size bytes) const;
  [[noreturn]] void exhausted(MemoryKind kind, int pe, const std::string& name, Size bytes, Size left) const;

  int pes_;
  bool phantom_;
  Size data_bytes_;
  Size stride_;
  std::byte* base_ = nullptr;
  Part parts_[2];                              // symmetric: bottom; top: minimum over PEs
  std::vector<Size> local_top_[2];             // by PE
  std::vector<Request> requests_;              // collective allocations in order
  std::vector<std::size_t> next_request_;      // by PE
  std::map<Size, Buffer> symmetric_;           // by offset
  std::vector<std::map<Size, Buffer>> local_;  // by PE, by offset
};

}  // namespace tandem::sim
