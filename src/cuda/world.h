#pragma once
/// What the PEs of a world of threads share, and what each has by itself.

#include <cuda_runtime.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/segment.h"
#include "model/heap_book.h"
#include "tandem/cuda.h"
#include "tandem/impl/cuda/context.h"

namespace tandem::cuda {

/// Frees what cudaMalloc and cudaMallocHost gave.
struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct HostFree {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

/// One PE: its GPU, and the words by which its kernels give up.
struct Pe {
  int device = 0;
  std::unique_ptr<std::uint32_t, DeviceFree> abort;
  std::unique_ptr<WaitReport, HostFree> report;
};

class Threads {
 public:
  Threads(int pes, const CudaOptions& options);

  int num_pes() const { return static_cast<int>(pes_.size()); }
  const Pe& pe(int number) const { return pes_[static_cast<std::size_t>(number)]; }
  const Segment& segment() const { return segment_; }
  const Machine& machine() const { return machine_; }

  Size allocate(int pe, bool symmetric, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);
  std::string describe(const void* address) const;
  Context context(const Team& team) const;

  /// Waits for all PEs' host programs; throws RuntimeFailure where one of them has failed.
  void barrier();
  void fail();

 private:
  std::vector<Pe> pes_;
  Segment segment_;
  Machine machine_;
  double timeout_s_;
  mutable std::mutex mutex_;
  HeapBook book_;
  std::condition_variable changed_;
  int waiting_ = 0;
  std::uint64_t round_ = 0;
  bool failed_ = false;
};

/// Runs `program` as PE `pe` on the calling thread.
void run_pe(Threads& threads, int pe, const std::function<void(World&)>& program);

}  // namespace tandem::cuda
