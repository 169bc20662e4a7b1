#pragma once
/// Ring send-recv: every PE puts its bytes into the next PE's output.
///
/// It takes one step over each link. Blocks divide the bytes; a block's put streams by itself, so it is not cut
/// further. It needs put_signal to the next PE, so it works within a node and between nodes. Separate buffers. A PE
/// waits for the next one's `ready` of this call before it writes there; MoveKernel explains why that is enough.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct SendRecvRing : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int me = block.pe();
    const int next = (me + 1) % n;
    const int previous = (me + n - 1) % n;
    const Range part = own_part(block, a.count);
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify(block.slots(a.ready) + me, epoch, previous);
    block.wait(block.slots(a.ready) + next, 1, epoch);
    put_and_notify(block, a.out + part.begin, a.in.local() + part.begin, part.size(), block.slots(a.arrived) + me,
                   epoch, next);
    block.wait(block.slots(a.arrived) + previous, 1, epoch);
    finish_puts(block);
  }
};

TANDEM_GPU_KERNEL(SendRecvRing, 512);
TANDEM_GPU_BETWEEN_NODES(SendRecvRing);

}  // namespace tandem::kernels
