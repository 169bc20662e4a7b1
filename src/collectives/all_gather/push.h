#pragma once
/// Push all-gather: every PE puts its bytes directly into every peer's output, the next PE's first.
///
/// One step; each PE sends and receives n-1 times its bytes. At step s PE p writes to p+s, so that no two write to the
/// same peer. Needs put_signal only: stores within a node, messages between nodes. In-place allowed (in == out + pe *
/// count).

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct AllGatherPush : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const std::byte* const from = a.in.local() + part.begin;
    const Symm<std::byte> to = a.out + (me * a.count + part.begin);
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify_all(a.ready, epoch);
    put_to_all<true>(block, a, to, part.size(), epoch, [&](int) { return from; });
    wait_peers(block, a.arrived, epoch);
    finish_puts(block);
  }
};

TANDEM_GPU_KERNEL(AllGatherPush, 512);
TANDEM_GPU_BETWEEN_NODES(AllGatherPush);

}  // namespace tandem::kernels
