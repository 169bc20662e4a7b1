#pragma once
/// Alternating measurements: programs run round by round, so that disturbances of the machine affect all of them alike.

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/median.h"
#include "cuda/driver/graph.h"
#include "tandem/world.h"

namespace tandem::cli {

/// Consecutive calls in a PE's stream between two events. Two calls before them synchronise the PEs.
class TimedCalls {
 public:
  /// With `graph` the calls are captured now and replayed later.
  TimedCalls(Stream& stream, std::function<void()> call, int calls, bool graph);
  ~TimedCalls();
  TimedCalls(const TimedCalls&) = delete;
  TimedCalls& operator=(const TimedCalls&) = delete;

  /// Enqueues the calls and waits. Returns the microseconds of one call.
  double run();

 private:
  void enqueue();

  Stream& stream_;
  std::function<void()> call_;
  int calls_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::unique_ptr<cuda::Graph> graph_;
};

}  // namespace tandem::cli
