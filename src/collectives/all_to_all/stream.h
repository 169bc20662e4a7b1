#pragma once
/// All-to-all through slots: every PE stores each peer's bytes to slots of that peer, which copies them to its output.
///
/// It takes one step. Peers access no buffer of the caller, so these may lie anywhere. It needs stores to every PE, so
/// one node only. Separate buffers.

#include "base/gpu_kernel.h"
#include "collectives/steps/stream_move.h"

namespace tandem::kernels {

struct AllToAllStream : StreamMoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    stream_to_all(block, a, [&](int pe) { return a.in.local() + pe * a.count; });
  }
};

TANDEM_GPU_KERNEL(AllToAllStream, 512);

}  // namespace tandem::kernels
