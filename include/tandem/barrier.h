#pragma once
/// Barriers between PEs: within a kernel, and as an item of work in a stream.
///
/// A dissemination barrier (Hensgen, Finkel and Manber 1988). In round r every PE signals the PE 2^r after it, and
/// waits for the one 2^r before it. After ceil(log2 n) rounds every PE has a signal from all others, directly or
/// through others. It works for any number of PEs, within a node and between nodes.
/// Words are never cleared. They hold the number of the barrier, which only grows, and a PE that is ahead increases it
/// further. Block b of a grid synchronises with block b of the other PEs, with words of its own.

#include "tandem/signal.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// The memory of a barrier. Its handles belong to its team.
struct TeamBarrier {
  /// The most rounds of a barrier: enough for 2^32 PEs.
  static constexpr int kMostRounds = 32;

  Signals words;  ///< [block][kMostRounds]
  Epochs epochs;  ///< [block]: barriers so far
};

/// Makes a barrier for grids of up to `blocks` blocks. Collective over the world: it allocates on the symmetric heap.
TeamBarrier make_team_barrier(World& world, const Team& team, int blocks = 1);

/// Blocks until this block of every PE of the launch's team is here. Every block of the grid calls it equally often, on
/// every PE. Earlier stores of every PE are visible to all afterwards; puts to other nodes need a quiet (OpenSHMEM 1.5,
/// `shmem_team_sync`).
template <class Block>
TANDEM_DEVICE void team_sync(Block& block, const TeamBarrier& barrier) {
  const int n = block.num_pes();
  const Signals words = barrier.words + Size{block.index()} * TeamBarrier::kMostRounds;
  const Epoch epoch = block.fetch_add(barrier.epochs.words + block.index(), Epoch{1}, Scope::kGpu, Order::kRelaxed) + 1;
  int round = 0;
  for (Size distance = 1; distance < n; distance *= 2, ++round) {
    block.notify(words + round, epoch, static_cast<int>((block.pe() + distance) % n));
    block.wait(words + round, 1, epoch);
  }
}

/// Does the same after a quiet: this block's earlier puts, gets and stores are complete everywhere, too (OpenSHMEM 1.5,
/// `shmem_barrier_all`).
template <class Block>
TANDEM_DEVICE void barrier_all(Block& block, const TeamBarrier& barrier) {
  block.quiet();
  team_sync(block, barrier);
}

/// Enqueues a barrier of one warp. Later work in the stream starts when all PEs' streams have reached it. `barrier` and
/// `team` belong together. No kernel may use the barrier at the same time.
void barrier_on(Stream& stream, const TeamBarrier& barrier, const Team& team);

}  // namespace tandem
