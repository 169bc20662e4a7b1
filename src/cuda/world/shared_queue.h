#pragma once
/// Hardware queues of GPUs that PEs share.

#include <string>

namespace tandem::cuda {

/// One of a GPU's queues, for one stream: kernels of streams that share a queue wait for each other's beginning, which
/// those that wait for other PEs on the same GPU do not survive.
class SharedQueue {
 public:
  /// `sharing`: PEs on the GPU. Throws Unsupported, naming `stream`, where none is left.
  SharedQueue(int device, int sharing, const std::string& stream);
  ~SharedQueue();
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

 private:
  int device_;
};

}  // namespace tandem::cuda
