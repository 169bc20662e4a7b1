#pragma once
/// Ring all-gather: in n-1 steps each PE sends to the next one the bytes that it received last, its own bytes first.
///
/// Each link carries n-1 times a PE's bytes, to one neighbour only. Every chunk that arrives has its own signal word.
/// It needs put_signal to the next PE, so it works within a node and between nodes. In-place allowed (in == out + pe *
/// count).

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

struct AllGatherRing : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int me = block.pe();
    const int next = (me + 1) % n;
    const Range part = own_part(block, a.count);
    const Symm<std::byte> out = a.out + part.begin;
    const Signals arrived = block.slots(a.arrived);
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify(block.slots(a.ready) + me, epoch, (me + n - 1) % n);
    copy_unless_same(block, out.local() + me * a.count, a.in.local() + part.begin, part.size());
    block.wait(block.slots(a.ready) + next, 1, epoch);
    for (int step = 0; step < n - 1; ++step) {
      const int owner = (me + n - step) % n;
      if (step > 0) block.wait(arrived + owner, 1, epoch);
      const Symm<std::byte> chunk = out + owner * a.count;
      block.put_signal_nbi(chunk, chunk.local(), part.size(), arrived + owner, epoch, next);
    }
    wait_peers(block, a.arrived, epoch);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNEL(AllGatherRing, 512);
TANDEM_GPU_BETWEEN_NODES(AllGatherRing);

}  // namespace tandem::kernels
