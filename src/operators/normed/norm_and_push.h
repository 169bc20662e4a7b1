#pragma once
/// The same as norm_rows.h for rows that all PEs need: each block stores its rows on all PEs and then signals there.

#include "operators/normed/norm_rows.h"
#include "tandem/signal.h"

namespace tandem::ops {

template <class T, class Q>
struct NormAndPush {
  struct Args : NormRows<T, Q>::Args {
    Signals ready;  // of the chunks of these rows, each of which grows by the number of blocks in each call
    int chunks = 0;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    NormRows<T, Q>::run(block, a);
    // A row lies in one chunk, but a block may have rows of any.
    for (const int pe : block.pes_from_self()) {
      if (pe == block.pe()) continue;
      for (int chunk = 0; chunk < a.chunks; ++chunk) block.notify(a.ready + chunk, 1, pe, SignalOp::kAdd);
    }
  }
};

TANDEM_GPU_OUTPUT_KERNELS(NormAndPush, 512);

}  // namespace tandem::ops
