#pragma once
/// Direct broadcast: the root puts all bytes to every PE.
///
/// It takes one step, with n-1 times the bytes out of the root, so it is for small sizes. It needs put_signal only.
/// In-place allowed. The root waits for a PE's `ready` of this call before it writes there; MoveKernel explains why
/// that is enough.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct BroadcastDirect : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const Symm<std::byte> to = a.out + part.begin;
    const Epoch epoch = block.next_epoch(a.epochs);

    if (me != a.root) {
      block.notify(block.slots(a.ready) + me, epoch, a.root);
      block.wait(block.slots(a.arrived) + a.root, 1, epoch);
      return;
    }
    const std::byte* const from = a.in.local() + part.begin;
    put_to_all<true>(block, a, to, part.size(), epoch, [&](int) { return from; });
    finish_puts(block);
  }
};

TANDEM_GPU_KERNEL(BroadcastDirect, 512);
TANDEM_GPU_BETWEEN_NODES(BroadcastDirect);

}  // namespace tandem::kernels
