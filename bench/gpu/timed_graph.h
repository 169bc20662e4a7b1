#pragma once
/// A CUDA graph of calls with an event before and after those that count.

#include <functional>
#include <memory>
#include <vector>

#include "gpu/graph.h"
#include "tandem/stream.h"

namespace tandem::bench {

class TimedGraph {
 public:
  /// One call brings the PEs together, `calls` count.
  TimedGraph(cudaStream_t stream, int calls, const std::function<void()>& call) : calls_(calls) {
    test::cuda_check(cudaEventCreate(&begin_), "cudaEventCreate");
    test::cuda_check(cudaEventCreate(&end_), "cudaEventCreate");
    graph_ = std::make_unique<test::Graph>(stream, [&] {
      call();
      test::cuda_check(cudaEventRecordWithFlags(begin_, stream, cudaEventRecordExternal), "cudaEventRecord");
      for (int i = 0; i < calls; ++i) call();
      test::cuda_check(cudaEventRecordWithFlags(end_, stream, cudaEventRecordExternal), "cudaEventRecord");
    });
  }
  /// Microseconds of one call go to `us`.
  void replay(Stream& stream) {
    graph_->launch();
    stream.synchronize();
    float ms = 0;
    test::cuda_check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    us.push_back(static_cast<double>(ms) * 1000 / calls_);
  }
  std::vector<double> us{};

 private:
  int calls_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;  // as long as the process
  std::unique_ptr<test::Graph> graph_;
};

}  // namespace tandem::bench
