#pragma once
/// Direct gather: every PE puts its bytes into the root's output.
///
/// One step, n-1 times the bytes into the root. Needs put_signal to the root: works within a node and between nodes.
/// In-place allowed at the root (in == out + root * count).
/// A PE waits for the root's `ready` of this call before it writes there; MoveKernel explains why that is enough.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

struct GatherDirect : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const std::byte* const from = a.in.local() + part.begin;
    const Symm<std::byte> to = a.out + (me * a.count + part.begin);
    const Epoch epoch = block.next_epoch(a.epochs);

    if (me == a.root) {
      block.notify_all(a.ready, epoch);
      copy_unless_same(block, to.local(), from, part.size());
      wait_peers(block, a.arrived, epoch);
    } else {
      block.wait(block.slots(a.ready) + a.root, 1, epoch);
      block.put_signal_nbi(to, from, part.size(), block.slots(a.arrived) + me, epoch, a.root);
    }
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNEL(GatherDirect, 512);
TANDEM_GPU_BETWEEN_NODES(GatherDirect);

}  // namespace tandem::kernels
