#pragma once
/// The memory of all PEs of a world on GPUs: one address range, PE p's part at p * stride, each part on its own PE's
/// GPU and mapped for all (CUDA virtual memory management).

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "tandem/range.h"

namespace tandem::cuda {

class Segment {
 public:
  /// `devices[p]` is PE p's GPU; several PEs may share one. `bytes` a PE, rounded up to the granularity of the
  /// hardware. Throws OutOfMemory (asked, free), Unsupported where two of the GPUs do not reach each other.
  Segment(const std::vector<int>& devices, Size bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* base() const { return reinterpret_cast<std::byte*>(base_); }
  Size stride() const { return stride_; }
  int pe_of(const void* address) const {
    return static_cast<int>((static_cast<const std::byte*>(address) - base()) / stride_);
  }

 private:
  void map(const std::vector<int>& devices);
  void release();

  CUdeviceptr base_ = 0;
  Size stride_ = 0;
  int pes_ = 0;
  std::vector<CUmemGenericAllocationHandle> mapped_;
};

}  // namespace tandem::cuda
