#pragma once
/// Hardware queues of GPUs that PEs share.

#include <string>

namespace tandem::cuda {

/// One of a GPU's queues, for one stream. Kernels of streams that share a queue wait for each other's start. They
/// deadlock if they wait for other PEs on the same GPU.
class SharedQueue {
 public:
  /// `sharing` is the number of PEs on the GPU. Throws Unsupported, naming `stream`, if no queue is left.
  SharedQueue(int device, int sharing, const std::string& stream);
  ~SharedQueue();
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

 private:
  int device_;
};

}  // namespace tandem::cuda
