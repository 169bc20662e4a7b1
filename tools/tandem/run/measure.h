#pragma once
/// Measures calls in steady state, and keeps the last one's interval on the timeline.

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem::cli {

/// One measured call over all PEs, from the common barrier to the end of the slowest PE.
struct CallWindow {
  double begin_us = std::numeric_limits<double>::max();
  double end_us = 0;

  void add(double begin, double end) {
    begin_us = std::min(begin_us, begin);
    end_us = std::max(end_us, end);
  }
  double us() const { return end_us - begin_us; }
};

/// The measured calls of a simulation, shared by the host programs of all PEs. Its size does not depend on their
/// number.
class Measurement {
 public:
  /// `after_call` is called once for each call, including warm-up calls.
  Measurement(int warmups, int iterations, std::function<void()> after_call)
      : warmups_(warmups), iterations_(iterations), after_call_(std::move(after_call)) {}

  /// Runs the warm-up calls and the iterations. Each consists of `prepare` (data into the buffers), a barrier, `call`
  /// (which enqueues) and the end of the stream. Every PE is done when this returns.
  void run(World& world, Stream& stream, const std::function<void()>& prepare, const std::function<void()>& call) {
    for (int i = -warmups_; i < iterations_; ++i) {
      prepare();
      world.barrier();
      const double begin = world.time_us();
      call();
      stream.synchronize();
      if (i >= 0) add(i, begin, world.time_us());
      world.barrier();
      if (world.pe() == 0) after_call_();
    }
  }

  double mean_us() const { return (sum_us_ + last_.us()) / iterations_; }
  const CallWindow& last() const { return last_; }

 private:
  /// Barriers separate calls, so PEs never add to two of them alternately.
  void add(int iteration, double begin, double end) {
    if (iteration != number_) {
      sum_us_ += last_.us();
      last_ = {};
      number_ = iteration;
    }
    last_.add(begin, end);
  }

  int warmups_, iterations_;
  std::function<void()> after_call_;
  int number_ = 0;  ///< call of `last_`
  CallWindow last_;
  double sum_us_ = 0;  ///< calls before `last_`
};

}  // namespace tandem::cli
