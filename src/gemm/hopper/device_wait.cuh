#pragma once
/// The wait of the GEMM's gates.

#include "tandem/impl/cuda/patience.cuh"

namespace tandem::cuda {

/// Waits until a word has grown to `expected`; the calling thread may then read by TMA what the word stands for.
/// Returns after a time-out too: the pipelines' barriers go on, and the results are undefined.
__device__ inline void wait_before_tma(const Context& context, const Signal* word, Epoch expected) {
  Patience patience(context);
  for (Epoch found = 0; (found = load_acquire(&word->value)) < expected;)
    if (patience.is_over_beside_wgmma(word, expected, found)) break;
  // The data came through the generic proxy or a copy engine, TMA reads it through the async proxy.
  fence_proxy_async();
}

}  // namespace tandem::cuda
