#pragma once
/// All-gather through slots: every PE stores its bytes to slots of all peers, which copy them to their outputs.
///
/// It takes one step; each PE sends and receives n-1 times its bytes. Peers access no buffer of the caller, so these
/// may lie anywhere. It needs stores to every PE, so one node only. In-place allowed (in == out + pe * count).

#include "base/gpu_kernel.h"
#include "collectives/steps/stream_move.h"

namespace tandem::kernels {

struct AllGatherStream : StreamMoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    stream_to_all(block, a, [&](int) { return a.in.local(); });
  }
};

TANDEM_GPU_KERNEL(AllGatherStream, 512);

}  // namespace tandem::kernels
