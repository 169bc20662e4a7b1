#pragma once
/// Times calls in steady state, and keeps the last one's place on the timeline.

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem::cli {

/// One measured call over all PEs: from the barrier from which all start to the end of the slowest.
struct CallWindow {
  double begin_us = std::numeric_limits<double>::max();
  double end_us = 0;

  void add(double begin, double end) {
    begin_us = std::min(begin_us, begin);
    end_us = std::max(end_us, end);
  }
  double us() const { return end_us - begin_us; }
};

/// The measured calls of a simulation; shared by the host programs of all PEs.
class Measurement {
 public:
  Measurement(int warmups, int iterations) : warmups_(warmups), windows_(static_cast<std::size_t>(iterations)) {}

  /// Calls to warm up, then once for each iteration: `prepare` (data into the buffers), a barrier, `call` (which
  /// enqueues), the end of the stream. Every PE is done when this returns.
  void run(World& world, Stream& stream, const std::function<void()>& prepare, const std::function<void()>& call) {
    for (int i = -warmups_; i < static_cast<int>(windows_.size()); ++i) {
      prepare();
      world.barrier();
      const double begin = world.time_us();
      call();
      stream.synchronize();
      if (i >= 0) windows_[static_cast<std::size_t>(i)].add(begin, world.time_us());
      world.barrier();
    }
  }

  double mean_us() const {
    double sum = 0;
    for (const CallWindow& window : windows_) sum += window.us();
    return sum / static_cast<double>(windows_.size());
  }
  const CallWindow& last() const { return windows_.back(); }

 private:
  int warmups_;
  std::vector<CallWindow> windows_;
};

}  // namespace tandem::cli
