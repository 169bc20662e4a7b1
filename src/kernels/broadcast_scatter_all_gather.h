#pragma once
/// Broadcast as a scatter over the other n-1 PEs, whose parts they pass on to each other, pipelined in chunks.
///
/// The bytes leave the root once, and (n-2)/(n-1) of them leave every other PE: nearly the rate of one link, whatever n
/// is. Needs put_signal only. In-place allowed. Chunks are written only to PEs that are `ready` for this call: see
/// MoveKernel for why no other credit is needed.

#include "kernels/move.h"

namespace tandem::kernels {

struct BroadcastScatterAllGather : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int others = block.num_pes() - 1;
    const int me = block.pe();
    const Range whole = own_part(block, a.count);
    const Split parts = split(whole, others > 0 ? others : 1, 16);  // part i is the i-th PE's after the root
    const Chunks chunks(parts.step());
    const Epoch epoch = block.next_epoch(a.epochs);
    const auto other = [&](int i) { return (a.root + 1 + i) % block.num_pes(); };
    // Chunk i of the part of `owner`, from this PE's `from`.
    const auto send = [&](const std::byte* from, Range part, Size i, int owner, int pe) {
      const ChunkSignals signals(block, a.arrived, owner, epoch);
      const Range chunk = chunks.of(part, i);
      block.put_signal_nbi(a.out + chunk.begin, from + chunk.begin, chunk.size(), signals.word(i), signals.value(i),
                           pe);
    };

    if (me == a.root) {
      wait_peers(block, a.ready, epoch);
      for (Size i = 0; i < chunks.count(); ++i) {
        ChunkSignals::before(block, i);
        for (int p = 0; p < others; ++p) send(a.in.local(), parts[p], i, other(p), other(p));
      }
      copy_unless_same(block, a.out.local() + whole.begin, a.in.local() + whole.begin, whole.size());
    } else {
      const int mine = (me - a.root - 1 + block.num_pes()) % block.num_pes();
      const ChunkSignals own(block, a.arrived, me, epoch);
      block.notify_all(a.ready, epoch);
      for (int step = 1; step < others; ++step)
        block.wait(block.slots(a.ready) + other((mine + step) % others), 1, epoch);
      for (Size i = 0; i < chunks.count(); ++i) {
        own.wait(block, i);
        ChunkSignals::before(block, i);
        for (int step = 1; step < others; ++step)
          send(a.out.local(), parts[mine], i, me, other((mine + step) % others));
      }
      for (int step = 1; step < others; ++step)
        ChunkSignals(block, a.arrived, other((mine + step) % others), epoch).wait_to_end(block, chunks.count());
    }
    block.quiet();
  }
};

}  // namespace tandem::kernels
