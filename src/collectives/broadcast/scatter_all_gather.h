#pragma once
/// Broadcast as a scatter over the other n-1 PEs, which forward their parts to each other, pipelined in chunks.
///
/// The bytes leave the root once, and (n-2)/(n-1) of them leave every other PE: nearly the rate of one link for any n.
/// Each part has its own blocks, so that parts do not wait for each other. It needs put_signal only. In-place allowed.
/// Chunks are written only to PEs that are `ready` for this call; MoveKernel explains why no other credit is needed.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

struct BroadcastScatterAllGather : MoveKernel {
  /// Rounds to the same number of blocks for each part.
  static int suitable_blocks(const Team& team, int blocks) {
    return static_cast<int>(round_up(blocks, max(1, team.size - 1)));
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int others = block.num_pes() - 1;
    const bool is_root = block.pe() == a.root;
    const Epoch epoch = block.next_epoch(a.epochs);
    if (is_root)
      wait_peers(block, a.ready, epoch);
    else
      block.notify_all(a.ready, epoch);
    // If there are fewer blocks than parts, blocks take several parts; otherwise several blocks share a part.
    const int first = others > 0 ? block.index() % others : 0;
    for (int part = first; part < others; part += block.count()) {
      const int sharing = max(1, (block.count() - part + others - 1) / others);
      const Flow flow(block, a, part, split(split(a.count, others, 16)[part], sharing, 16)[block.index() / others],
                      epoch);
      if (is_root)
        flow.send(block, a);
      else if (block.pe() == flow.owner)
        flow.pass_on(block, a);
      else
        flow.arrived.wait_to_end(block, flow.chunks.count());
    }
    const Range own = own_part(block, a.count);
    if (is_root) copy_unless_same(block, a.out.local() + own.begin, a.in.local() + own.begin, own.size());
    quiet_at_end(block);
  }

 private:
  /// The bytes of one part that one block moves.
  struct Flow {
    int owner;  // the PE that gets it from the root and forwards it
    Range range;
    Chunks chunks;
    ChunkSignals arrived;
    Epoch epoch;

    template <class Block>
    TANDEM_DEVICE Flow(const Block& block, const Args& a, int part, Range own_range, Epoch own_epoch)
        : owner((a.root + 1 + part) % block.num_pes()),
          range(own_range),
          chunks(own_range.size()),
          arrived(block, a.arrived, owner, own_epoch),
          epoch(own_epoch) {}

    template <class Block>
    TANDEM_DEVICE void send(Block& block, const Args& a) const {
      for (Size i = 0; i < chunks.count(); ++i) {
        ChunkSignals::before(block, i);
        put(block, a, a.in.local(), i, owner);
      }
    }
    /// Within a node one fence covers all receivers of a chunk.
    template <class Block>
    TANDEM_DEVICE void pass_on(Block& block, const Args& a) const {
      const bool stores = block.team().one_node();
      const auto each = [&](const auto& to) {
        for (const int pe : block.peers_from_self())
          if (pe != a.root) to(pe);
      };
      each([&](int pe) { block.wait(block.slots(a.ready) + pe, 1, epoch); });
      for (Size i = 0; i < chunks.count(); ++i) {
        const Range chunk = chunks.of(range, i);
        arrived.wait(block, i);
        if (stores) {
          each([&](int pe) { block.copy(a.out.on(pe) + chunk.begin, a.out.local() + chunk.begin, chunk.size()); });
          block.fence();
          each([&](int pe) { block.signal(arrived.word(i), arrived.value(i), pe); });
        } else {
          ChunkSignals::before(block, i);
          each([&](int pe) { put(block, a, a.out.local(), i, pe); });
        }
      }
    }
    template <class Block>
    TANDEM_DEVICE void put(Block& block, const Args& a, const std::byte* from, Size i, int pe) const {
      const Range chunk = chunks.of(range, i);
      block.put_signal_nbi(a.out + chunk.begin, from + chunk.begin, chunk.size(), arrived.word(i), arrived.value(i),
                           pe);
    }
  };
};

TANDEM_GPU_KERNEL(BroadcastScatterAllGather, 512);
TANDEM_GPU_BETWEEN_NODES(BroadcastScatterAllGather);

}  // namespace tandem::kernels
