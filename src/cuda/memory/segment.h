#pragma once
/// The memory of all PEs of a world on GPUs: one address range, PE p's part at p * stride, each part on its own PE's
/// GPU (CUDA virtual memory management). Where PEs are processes, each of them maps all parts into a range of its own.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "cuda/memory/handles.h"
#include "tandem/range.h"

namespace tandem::cuda {

class Segment {
 public:
  /// How much of each PE's part is there, and what it may grow to; rounded up to the granularity of the hardware.
  struct Bytes {
    Size first = 0;
    Size most = 0;
  };

  /// For PEs that are threads: `devices[p]` is PE p's GPU; several PEs may share one. Throws OutOfMemory (asked, free),
  /// Unsupported where two of the GPUs do not reach each other.
  Segment(const std::vector<int>& devices, const Bytes& bytes);
  /// For PEs that are processes, with memory that this makes: the part of this process on `device`. Collective over the
  /// session; `bytes` are the same on all.
  Segment(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, const Bytes& bytes);
  /// The same with memory that is there, exportable, in as many chunks of the same sizes on all PEs (at most
  /// FdExchange::kMost). They are the segment's from here on. What one PE cannot map is an error of all.
  Segment(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, const std::vector<Chunk>& chunks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Adds `bytes` (a multiple of the granularity) behind each PE's part; as it was where that fails. The two kinds as
  /// above. Throws OutOfMemory and what the driver says; of processes on all.
  void grow(const std::vector<int>& devices, Size bytes);
  void grow(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, Size bytes);

  std::byte* base() const { return reinterpret_cast<std::byte*>(base_); }
  Size stride() const { return stride_; }
  int pe_of(const void* address) const {
    return static_cast<int>((static_cast<const std::byte*>(address) - base()) / stride_);
  }

 private:
  struct Mapping {
    CUdeviceptr address;
    Chunk chunk;
  };

  void reserve();
  void make_all(const std::vector<int>& devices, Size bytes);
  void share(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, const std::vector<Chunk>& own);
  void map(int pe, const std::vector<Chunk>& chunks, const std::vector<int>& devices);
  void unmap_down_to(std::size_t mappings);
  void release();

  CUdeviceptr base_ = 0;
  Size stride_ = 0;
  Size there_ = 0;  // of each part
  int pes_ = 0;
  /// How its memory reaches other processes; what users bring does by descriptors.
  CUmemAllocationHandleType handles_ = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::vector<Mapping> mapped_;
};

}  // namespace tandem::cuda
