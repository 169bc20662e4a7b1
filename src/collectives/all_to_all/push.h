#pragma once
/// Push all-to-all: every PE puts each peer's bytes directly into that peer's output, the next PE's first.
///
/// It takes one step. At step s PE p writes to p+s, so that no two PEs write to the same peer at once.
/// Needs put_signal only: stores within a node, messages between nodes. Separate buffers.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct AllToAllPush : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const std::byte* const in = a.in.local() + part.begin;
    const Symm<std::byte> to = a.out + (me * a.count + part.begin);
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify_all(a.ready, epoch);
    put_to_all<false>(block, a, to, part.size(), epoch, [&](int pe) { return in + pe * a.count; });
    wait_peers(block, a.arrived, epoch);
    finish_puts(block);
  }
};

TANDEM_GPU_KERNEL(AllToAllPush, 512);
TANDEM_GPU_BETWEEN_NODES(AllToAllPush);

}  // namespace tandem::kernels
