#pragma once
/// Replays of a CUDA graph of calls, and their times.

#include <utility>
#include <vector>

#include "gpu/graph.h"
#include "tools/tandem/gpu/measure/timed_calls.h"

namespace tandem::bench {

class TimedGraph {
 public:
  /// Captures the calls now.
  TimedGraph(Stream& stream, int calls, std::function<void()> call)
      : calls_(std::make_unique<cli::TimedCalls>(stream, std::move(call), calls, true)) {}
  /// Adds the microseconds of one call to `us`.
  void replay() { us.push_back(calls_->run()); }
  std::vector<double> us{};

 private:
  std::unique_ptr<cli::TimedCalls> calls_;
};

}  // namespace tandem::bench
