#pragma once
/// Captured CUDA graphs, for benchmarks and tests.

#include <functional>

#include "base/cuda_names.h"
#include "cuda/driver/error.h"

namespace tandem::cuda {

/// Captures the work that `enqueue` puts into the stream, to be replayed any number of times.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& enqueue) : stream_(stream) {
    // Other threads continue with calls that a capture of the whole process would forbid.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
    check(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() { check(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem::cuda
