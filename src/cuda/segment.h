#pragma once
/// The memory of all PEs of a world on GPUs: one address range, PE p's part at p * stride, each part on its own PE's
/// GPU (CUDA virtual memory management). Where PEs are processes, each of them maps all parts into a range of its own.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "bootstrap/fd_exchange.h"
#include "tandem/range.h"

namespace tandem::cuda {

/// A piece of physical memory; the handle is its owner's to release.
struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  Size bytes = 0;
};

class Segment {
 public:
  /// For PEs that are threads: `devices[p]` is PE p's GPU; several PEs may share one. `bytes` a PE, rounded up to the
  /// granularity of the hardware. Throws OutOfMemory (asked, free), Unsupported where two of the GPUs do not reach each
  /// other.
  Segment(const std::vector<int>& devices, Size bytes);
  /// For PEs that are processes, with memory that this makes: the part of this process on `device`. Collective over the
  /// session; `bytes` is the same on all.
  Segment(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, Size bytes);
  /// The same with memory that is there, exportable, in as many chunks of the same sizes on all PEs (at most
  /// FdExchange::kMost). They are the segment's from here on.
  Segment(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, const std::vector<Chunk>& chunks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

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
  void make_all(const std::vector<int>& devices);
  void share(bootstrap::Session& session, bootstrap::FdExchange& exchange, int device, const std::vector<Chunk>& own);
  void map(int pe, const std::vector<Chunk>& chunks, const std::vector<int>& devices);
  void release();

  CUdeviceptr base_ = 0;
  Size stride_ = 0;
  int pes_ = 0;
  std::vector<Mapping> mapped_;
};

}  // namespace tandem::cuda
