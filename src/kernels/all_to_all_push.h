#pragma once
/// Push all-to-all: every PE puts each peer's bytes straight into that peer's output, the next PE's first.
///
/// One step; at step s PE p writes to p+s, so that no two write to the same peer at once.
/// Needs put_signal only: stores within a node, messages between nodes. Separate buffers.

#include "kernels/move.h"

namespace tandem::kernels {

struct AllToAllPush : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const OwnCopy own(block);
    const Range kept = own.part_to_keep(a.count);
    const Symm<std::byte> to = a.out + me * a.count;
    const Epoch epoch = block.next_epoch(a.epochs);
    const auto keep = [&] {
      block.copy(to.local() + kept.begin, a.in.local() + (me * a.count + kept.begin), kept.size());
    };
    if (!own.moves()) return keep();
    const Range part = own.part_to_move(a.count);
    block.notify_all(a.ready, epoch);
    put_to_peers(
        block, a, to + part.begin, part.size(), epoch,
        [&](int pe) { return a.in.local() + (pe * a.count + part.begin); }, keep);
  }
};

}  // namespace tandem::kernels
