#pragma once
/// What the PEs of a world of threads share, and what each has by itself.

#include <cuda_runtime.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/segment.h"
#include "model/heap_book.h"
#include "tandem/cuda.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// Frees what cudaMalloc, cudaMallocHost and cudaStreamCreate gave.
struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct HostFree {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

struct StreamFree {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};

/// One PE: its GPU, and the words by which its kernels give up.
struct Pe {
  int device = 0;
  /// For the host's own copies. The default stream would wait for kernels of PEs that share the GPU, which may wait for
  /// this PE.
  std::unique_ptr<CUstream_st, StreamFree> stream;
  std::unique_ptr<std::uint32_t, DeviceFree> abort;
  std::unique_ptr<WaitReport, HostFree> report;
};

class Threads {
 public:
  Threads(int pes, const CudaOptions& options);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int num_pes() const { return static_cast<int>(pes_.size()); }
  const Pe& pe(int number) const { return pes_[static_cast<std::size_t>(number)]; }
  const Segment& segment() const { return segment_; }
  const Machine& machine() const { return machine_; }
  /// PEs on the GPU of PE `pe`, itself included.
  int sharing(int pe) const;
  /// Blocks of a kernel that PE `pe` can have on its GPU at once, with as many for each that shares it.
  int most_blocks(const detail::DeviceKernel& kernel, int pe) const;
  bool early_launch() const { return early_launch_; }

  Size allocate(int pe, bool symmetric, MemoryKind kind, Size bytes, const std::string& name, Size element_bytes);
  std::string describe(const void* address) const;
  Context context(const Team& team) const;

  /// Waits for all PEs' host programs; throws RuntimeFailure where one of them has failed.
  void barrier();
  /// Ends everybody's waits, on the host and on the GPUs.
  void fail();
  bool failed() const;
  /// Waits until the GPUs have nothing to do. Never throws: errors are found by who synchronizes.
  void drain() const;

 private:
  std::vector<Pe> pes_;
  Segment segment_;
  Machine machine_;
  double timeout_s_;
  bool early_launch_;
  std::map<const detail::DeviceKernel*, int> blocks_per_sm_;
  mutable std::mutex mutex_;
  HeapBook book_;
  std::condition_variable changed_;
  int waiting_ = 0;
  std::uint64_t round_ = 0;
  bool failed_ = false;
};

/// Copies in stream order on the PE's own stream, and waits for it.
void copy_and_wait(const Pe& pe, void* to, const void* from, Size bytes);

/// Runs `program` as PE `pe` on the calling thread.
void run_pe(Threads& threads, int pe, const std::function<void(World&)>& program);

}  // namespace tandem::cuda
