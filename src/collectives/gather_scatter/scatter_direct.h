#pragma once
/// Direct scatter: every PE gets its bytes from the root's input.
///
/// It takes one step, with n-1 times the bytes out of the root, driven by the receiving PEs. It needs get from the
/// root: loads within a node, messages between nodes. In-place allowed at the root (out == in + root * count), since no
/// other PE needs to know where its output is. The input is read only after the root's `ready` for this call, and the
/// root ends only after all PEs have read it.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct ScatterDirect : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const Symm<const std::byte> from = a.in + (me * a.count + part.begin);
    std::byte* const to = a.out.local() + part.begin;
    const Epoch epoch = block.next_epoch(a.epochs);

    if (me == a.root) {
      block.notify_all(a.ready, epoch);
      copy_unless_same(block, to, from.local(), part.size());
      wait_peers(block, a.arrived, epoch);
    } else {
      block.wait(block.slots(a.ready) + a.root, 1, epoch);
      block.get(to, from, part.size(), a.root);
      block.notify(block.slots(a.arrived) + me, epoch, a.root);
    }
  }
};

TANDEM_GPU_KERNEL(ScatterDirect, 512);
TANDEM_GPU_BETWEEN_NODES(ScatterDirect);

}  // namespace tandem::kernels
