#pragma once
/// CUDA graphs, as tests of the CUDA backend use them.

#include "cuda/driver/graph.h"
#include "support/replay.h"

namespace tandem::test {

using cuda::Graph;

struct GraphReplay final : Replay {
  GraphReplay(Stream& stream, const std::function<void()>& enqueue)
      : graph(static_cast<cudaStream_t>(stream.native()), enqueue) {}
  void launch() override { graph.launch(); }
  Graph graph;
};

inline std::unique_ptr<Replay> capture_graph(Stream& stream, const std::function<void()>& enqueue) {
  return std::make_unique<GraphReplay>(stream, enqueue);
}

inline void cuda_check(cudaError_t code, const char* what) { cuda::check(code, what); }

}  // namespace tandem::test
