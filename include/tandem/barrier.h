#pragma once
/// Barriers between PEs: within a kernel, and as a stream's work of its own.
///
/// A dissemination barrier (Hensgen, Finkel and Manber 1988): in round r every PE tells the PE 2^r after it, and waits
/// for the one 2^r before it; after ceil(log2 n) rounds everybody has heard of everybody. Any number of PEs, within a
/// node and between nodes. No word is cleared: it holds the number of the barrier, which only grows, and a PE that runs
/// ahead to the next barrier makes it greater still. Block b of a grid meets block b of the other PEs, with words of
/// its own.

#include "tandem/signal.h"
#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem {

/// A barrier's memory; handles are those of its team.
struct TeamBarrier {
  /// The most rounds of a barrier: enough for 2^32 PEs.
  static constexpr int kMostRounds = 32;

  Signals words;  ///< [block][kMostRounds]
  Epochs epochs;  ///< [block]: barriers so far
};

/// For grids of up to `blocks` blocks. Collective over the world: allocates on the symmetric heap.
TeamBarrier make_team_barrier(World& world, const Team& team, int blocks = 1);

/// Blocks until this block of every PE of the launch's team is here. Every block of the grid, on every PE, the same
/// number of times. What a PE stored before is visible to all after it; puts to other nodes need a quiet
/// (OpenSHMEM 1.5, `shmem_team_sync`).
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

/// The same after a quiet: this block's puts, gets and stores are complete everywhere too (OpenSHMEM 1.5,
/// `shmem_barrier_all`).
template <class Block>
TANDEM_DEVICE void barrier_all(Block& block, const TeamBarrier& barrier) {
  block.quiet();
  team_sync(block, barrier);
}

/// Enqueues a barrier: what follows in the stream begins when all PEs' streams have come so far. One warp; `barrier`
/// and `team` belong together, and the barrier is not used by a kernel at the same time.
void barrier_on(Stream& stream, const TeamBarrier& barrier, const Team& team);

}  // namespace tandem
