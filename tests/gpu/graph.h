#pragma once
/// CUDA graphs, as tests and benchmarks of the CUDA backend use them.

#include <cuda_runtime.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "tandem/stream.h"

namespace tandem::test {

inline void cuda_check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

/// What `enqueue` puts into the stream, to be replayed any number of times.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& enqueue) : stream_(stream) {
    // Other threads go on with calls that a capture of the whole process would forbid.
    cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    try {
      enqueue();
    } catch (...) {
      cudaGraph_t broken = nullptr;
      cudaStreamEndCapture(stream, &broken);
      if (broken != nullptr) cudaGraphDestroy(broken);
      throw;
    }
    cudaGraph_t graph = nullptr;
    cuda_check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    cuda_check(made, "cudaGraphInstantiate");
    cuda_check(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() { cuda_check(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem::test
