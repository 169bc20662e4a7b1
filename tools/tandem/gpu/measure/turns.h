#pragma once
/// Programs that are measured against each other take turns, round by round, so that whatever the machine does meets
/// all of them alike.

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <vector>

#include "cuda/driver/graph.h"
#include "tandem/world.h"

namespace tandem::cli {

/// Some calls back to back in a PE's stream, between two events; two calls before them bring the PEs together.
class Turn {
 public:
  /// `graph`: the calls are captured now, and replayed.
  Turn(Stream& stream, std::function<void()> call, int calls, bool graph);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Enqueues and waits. Microseconds a call.
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

/// The middle one; of an even number the upper of two.
double median(std::vector<double> values);

}  // namespace tandem::cli
