#pragma once
/// Pull all-gather: every PE reads its peers' inputs, the next PE's first. docs/how-to/add_a_collective.md shows it.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

// listing: kernel
struct AllGatherPull : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = own_part(block, a.count);
    const Symm<std::byte> out = a.out + part.begin;
    const bool in_place = a.in.local() == a.out.local() + me * a.count;
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify_all(a.ready, epoch);  // this PE's input is complete
    copy_unless_same(block, out.local() + me * a.count, a.in.local() + part.begin, part.size());
    for (const int pe : block.peers_from_self()) {
      block.wait(block.slots(a.ready) + pe, 1, epoch);
      const std::byte* const from =
          in_place ? block.remote(out, pe) + pe * a.count : block.remote(a.in + part.begin, pe);
      block.copy(out.local() + pe * a.count, from, part.size());
      block.signal_after_reads(block.slots(a.arrived) + me, epoch, pe);  // PE `pe` may change its input
    }
    wait_peers(block, a.arrived, epoch);  // no peer reads this PE's input any more
  }
};

TANDEM_GPU_KERNEL(AllGatherPull, 512);
// end of listing

}  // namespace tandem::kernels
