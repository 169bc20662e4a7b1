#pragma once
/// The wait of the GEMM's gates.

#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

/// Waits until a word has grown to `expected`. The calling thread may then read the announced data by TMA. It also
/// returns after a timeout: the pipelines' barriers continue, and the results are undefined.
__device__ inline void wait_before_tma(const Context& context, const Signal* word, Epoch expected) {
  Watchdog watchdog(context);
  for (Epoch found = 0; (found = load_acquire(&word->value)) < expected;)
    if (watchdog.is_over_without_call(word, expected, found)) break;
  // The data came through the generic proxy or a copy engine, and TMA reads it through the async proxy.
  fence_proxy_async();
}

}  // namespace tandem::cuda
