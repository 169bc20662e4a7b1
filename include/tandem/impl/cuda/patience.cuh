#pragma once
/// Bounded waits.

#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/ptx.cuh"

namespace tandem::cuda {

/// The patience of one wait: asked after every poll that found nothing.
class Patience {
 public:
  __device__ explicit Patience(const Context& context) : context_(context) {}

  /// Whether to stop waiting, because the time is up or somebody gave up before.
  __device__ bool is_over(const void* word, Epoch expected, Epoch found) {
    if (++polls_ % kPollsBetweenLooks != 0) return false;
    if (*static_cast<volatile std::uint32_t*>(context_.abort) != 0) return true;
    const std::uint64_t now = global_timer();
    if (begin_ == 0) begin_ = now;
    if (now - begin_ < context_.timeout_ns) return false;
    if (atomicExch(context_.abort, 1U) == 0) {
      WaitReport& report = *context_.report;
      report.block = static_cast<int>(blockIdx.x);
      report.word = word;
      report.expected = expected;
      report.found = found;
      __threadfence_system();
      *static_cast<volatile std::uint32_t*>(&report.set) = 1;
    }
    return true;
  }

 private:
  static constexpr unsigned kPollsBetweenLooks = 256;

  const Context& context_;
  std::uint64_t begin_ = 0;
  unsigned polls_ = 0;
};

}  // namespace tandem::cuda
