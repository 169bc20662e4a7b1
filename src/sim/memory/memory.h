#pragma once
/// The memory of all simulated PEs: one address range for each, at a constant stride. Phantom mode has no data.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/mapping_pool.h"
#include "runtime/heap_allocator.h"
#include "tandem/range.h"

namespace tandem::sim {

class Memory {
 public:
  /// Reserves the memory. `data_bytes` is the capacity of a PE's data part, which may grow to `limit_bytes`. Both are
  /// less if the process has a limit on its address space (ulimit -v), of which all PEs take half at most. `guarded`:
  /// see HeapAllocator. Throws OutOfMemory if the address space is not available.
  Memory(int pes, bool phantom, Size data_bytes, Size limit_bytes, bool guarded = false);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Returns the address of PE 0's copy, or of the PE's own buffer (see HeapAllocator). The control part is filled with
  /// zeros, the data part with a pattern that is NaN in every float type.
  std::byte* allocate_symmetric(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);
  std::byte* allocate_local(int pe, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);

  /// Called once all PEs' host programs have reached the call; see HeapAllocator.
  void free_symmetric(int pe, const void* memory) { allocator_.free_symmetric(pe, own_offset(pe, memory)); }
  void release_symmetric(int pe, const void* memory) { allocator_.release_symmetric(pe, offset_of(memory)); }
  bool needs_barrier(int pe, MemoryKind kind, Size bytes) { return allocator_.needs_barrier(pe, kind, bytes); }
  void reclaim() { allocator_.reclaim(); }
  void free_local(int pe, const void* memory) { allocator_.free_local(pe, own_offset(pe, memory)); }
  /// Returns whether allocations may make it grow. It must grow at the same allocation under every schedule.
  bool can_grow() const { return allocator_.can_grow(); }

  /// Lets the first `pes` PEs alone have contents, because kernels of the others do not run.
  void fold(int pes) { filled_pes_ = pes; }

  /// If set, called for memory that an allocation has filled with its first contents.
  std::function<void(const void* begin, Size bytes)> on_fill;

  int pes() const { return allocator_.pes(); }
  Size stride() const { return stride_; }
  bool owns(const void* address) const {
    return as_byte(address) >= base_ && as_byte(address) < base_ + stride_ * pes();
  }
  /// Returns whether `bytes` bytes from there lie within one PE's memory.
  bool holds(const void* address, Size bytes) const {
    return owns(address) && bytes >= 0 && bytes <= (phantom_ ? stride_ : there_) - offset_of(address);
  }
  /// Returns the PE whose memory it is; `owns` must be true for the address.
  int pe_of(const void* address) const { return static_cast<int>((as_byte(address) - base_) / stride_); }
  /// Returns the offset from the start of its PE's range, which is equal for the copies of a symmetric buffer.
  Size offset_of(const void* address) const { return (as_byte(address) - base_) % stride_; }
  /// Returns whether an owned address lies in the part of signals, epochs and packets, which start as zeros.
  bool is_control(const void* address) const { return allocator_.kind_at(offset_of(address)) == MemoryKind::kControl; }
  bool backed(const void* address) const { return !phantom_ || !owns(address) || is_control(address); }
  /// Returns whether `bytes` bytes from an owned address lie within one buffer; zero bytes always do.
  bool within_buffer(const void* address, Size bytes) const {
    return allocator_.within_buffer(pe_of(address), offset_of(address), bytes);
  }
  struct Buffer {
    const void* begin;
    Size bytes;
  };
  /// Returns the buffer that contains an owned address; null and 0 bytes outside of buffers.
  Buffer buffer_of(const void* address) const {
    const Size offset = offset_of(address);
    const Range buffer = allocator_.buffer_range(pe_of(address), offset);
    return {as_byte(address) + (buffer.begin - offset), buffer.size()};
  }
  /// Returns the bytes from there to the end of its buffer, 0 outside of buffers; nothing outside of this memory.
  std::optional<Size> bytes_from(const void* address) const {
    if (!owns(address)) return std::nullopt;
    return allocator_.bytes_from(pe_of(address), offset_of(address)).value_or(0);
  }
  /// Returns whether an owned address lies in a freed buffer, which is known only for guarded memory.
  bool was_freed(const void* address) const { return allocator_.was_freed(pe_of(address), offset_of(address)); }
  /// Returns a name such as "arrived[3] on PE 2", for reports.
  std::string describe(const void* address) const;
  /// Returns a name such as "inbox[16, 32) on PE 2".
  std::string describe_range(const void* address, Size bytes) const;
  /// Returns " (the buffer has 128 bytes from there)" for an address in a buffer, else nothing.
  std::string describe_size(const void* address) const;

 private:
  static const std::byte* as_byte(const void* address) { return static_cast<const std::byte*>(address); }
  MappingPool::Use use() const { return phantom_ ? MappingPool::Use::kPhantomMemory : MappingPool::Use::kMemory; }
  static constexpr Size kLeastGivenBack = Size{1} << 20;  // system calls cost more than zeros of less
  static void clear(std::byte* begin, Size bytes);
  void fill(int pe, MemoryKind kind, Size offset, Size bytes) const;
  void open(Size offset, Size bytes) const;
  Size own_offset(int pe, const void* memory) const;

  HeapAllocator allocator_;
  int filled_pes_;
  bool phantom_;
  Size stride_;
  Size there_;  // bytes of each PE's range that may be used
  std::byte* base_ = nullptr;
};

}  // namespace tandem::sim
