#pragma once
/// NCCL, loaded at run time where the machine has it: the baseline of the benchmarks.

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/collectives.h"

namespace tandem::bench {

/// One communicator for each GPU of this process.
class Nccl {
 public:
  /// Loads `library`; throws Unsupported where it cannot, or where NCCL cannot start.
  Nccl(const std::string& library, int gpus);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  /// "2.28.9".
  const std::string& version() const { return version_; }
  /// Enqueues one bf16 collective of GPU `gpu`, with the meaning of `count` of collectives.h. Sums; root 0.
  void run(Collective collective, int gpu, const void* in, void* out, Size count, cudaStream_t stream) const;

 private:
  struct Functions;
  void send_recv(const std::vector<int>& to, const std::vector<int>& from, int gpu, const void* in, void* out,
                 Size count, cudaStream_t stream) const;

  void* library_ = nullptr;
  std::unique_ptr<Functions> nccl_;
  std::vector<void*> communicators_;
  std::string version_;
};

}  // namespace tandem::bench
