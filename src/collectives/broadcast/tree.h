#pragma once
/// Pipelined broadcast down a tree: a PE forwards each chunk to its children as it arrives.
///
/// With `Children` = 1 the tree is a chain: each link carries the bytes once, and the last PE is n-2 chunks late. That
/// is for large sizes (within a node BroadcastChain is faster). With two children the depth is log2(n) and each link
/// carries the bytes twice, for middle sizes and for many nodes. The tree covers the PEs from the root on, (root + i) %
/// n, so that a chain crosses each pair of neighbouring nodes once. It needs put_signal to the children, so it works
/// within a node and between nodes. In-place allowed. A chunk is written only to a child that is `ready` for this call;
/// MoveKernel explains why no other credit is needed.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

template <int Children>
struct BroadcastTree : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int me = block.pe();
    const int place = (me - a.root + n) % n;
    const int first_child = place * Children + 1;
    const int end_child = first_child + Children < n ? first_child + Children : n;
    const auto pe_at = [&](int at) { return (at + a.root) % n; };
    const Range part = own_part(block, a.count);
    // If a signal costs about a microsecond, smaller chunks deliver the last PE's bytes sooner.
    const bool by_stores = block.team().one_node();
    const Chunks chunks(part.size(), Size{by_stores ? 64 : 256} << 10);
    const Epoch epoch = block.next_epoch(a.epochs);
    const ChunkSignals arrived(block, a.arrived, a.root, epoch);

    if (place > 0) block.notify(block.slots(a.ready) + me, epoch, pe_at((place - 1) / Children));
    for (int child = first_child; child < end_child; ++child) block.wait(block.slots(a.ready) + pe_at(child), 1, epoch);

    const std::byte* const from = place == 0 ? a.in.local() : a.out.local();
    const bool keeps_as_it_sends = place == 0 && first_child < end_child && from != a.out.local() && by_stores &&
                                   suits_fragments(a.out.local(), from);
    for (Size i = 0; i < chunks.count(); ++i) {
      const Range chunk = chunks.of(part, i);
      if (place > 0) arrived.wait(block, i);
      ChunkSignals::before(block, i);
      if (keeps_as_it_sends) {
        // The bytes are loaded once, and the cost of storing the own ones is hidden behind the link.
        for (const Range tile : block.template tiles<std::byte>(chunk)) {
          const auto values = block.template load<std::byte>(from, tile);
          for (int child = first_child; child < end_child; ++child)
            block.store(block.remote(a.out, pe_at(child)), tile, values);
          block.store(a.out.local(), tile, values);
        }
        for (int child = first_child; child < end_child; ++child)
          block.notify(arrived.word(i), arrived.value(i), pe_at(child));
      } else {
        for (int child = first_child; child < end_child; ++child)
          block.put_signal_nbi(a.out + chunk.begin, from + chunk.begin, chunk.size(), arrived.word(i), arrived.value(i),
                               pe_at(child));
      }
    }
    if (!keeps_as_it_sends) copy_unless_same(block, a.out.local() + part.begin, from + part.begin, part.size());
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNEL(BroadcastTree<2>, 512);
TANDEM_GPU_BETWEEN_NODES(BroadcastTree<2>);

}  // namespace tandem::kernels
