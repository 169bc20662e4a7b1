#pragma once
/// Broadcast by pull: every PE reads the root's input.
///
/// One step; n-1 times the bytes leave the root, but each PE moves its own copy of them, all at the same time. It needs
/// loads from the root. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct BroadcastPull : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const Symm<const std::byte> from = a.in + part.begin;
    std::byte* const to = a.out.local() + part.begin;
    const Epoch epoch = block.next_epoch(a.epochs);

    if (me != a.root) {
      block.wait(block.slots(a.ready) + a.root, 1, epoch);  // the root's input is complete
      block.copy(to, block.remote(from, a.root), part.size());
      block.signal_after_reads(block.slots(a.arrived) + me, epoch, a.root);
      return;
    }
    for (const int pe : block.peers_from_self()) block.notify(block.slots(a.ready) + me, epoch, pe);
    copy_unless_same(block, to, from.local(), part.size());
    wait_peers(block, a.arrived, epoch);  // no peer reads the input any more
  }
};

TANDEM_GPU_KERNEL(BroadcastPull, 512);

}  // namespace tandem::kernels
