#pragma once
/// Several rings at once that alternate over the node's rail-aligned NICs (as NCCL's and Penny's rings do).
///
/// With m PEs in a node there are m rings, each with 1/m of the data. A ring visits the PEs of one node after the
/// other. It enters the first node at local index s and leaves it at s-1. It enters the second at s-1 and leaves it at
/// s, and so on. Every crossing thus keeps to its rail, except the last one if the number of nodes is odd. Rings 2i and
/// 2i+1 have s = 2i, and the odd one runs in the other direction. Each NIC then sends for one ring and receives for
/// one, and links within the node are used in both directions. A single ring would use one NIC of each node.
///
/// Fixed order within a ring: as the ring algorithm, by position in the ring. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_ring_steps.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// Returns the PE at `position` of ring `ring`. Positions count in the ring's own direction.
TANDEM_DEVICE constexpr int multi_ring_pe(const Team& team, int ring, int position) {
  const int m = team.node_size;
  const int forward = ring % 2 == 0 ? position : team.size - 1 - position;
  const int node = forward / m;
  const int step = node % 2 == 0 ? forward % m : m - 1 - forward % m;
  return node * m + (ring / 2 * 2 + step) % m;
}

/// The inverse.
TANDEM_DEVICE constexpr int multi_ring_position(const Team& team, int ring, int pe) {
  const int m = team.node_size;
  const int node = pe / m;
  const int step = (pe % m - ring / 2 * 2 + m) % m;
  const int forward = node * m + (node % 2 == 0 ? step : m - 1 - step);
  return ring % 2 == 0 ? forward : team.size - 1 - forward;
}

template <class T>
struct AllReduceMultiRing {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> partial;  // staging, count elements: sums under way, each chunk in its place
    Signals ready;    // [block]: the next PE of the block's ring has begun this call, so its buffers may be written
    Signals arrived;  // [block]: chunks delivered by the previous PE of the block's ring; see ring_count
    Epochs epochs;    // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  /// Block b works for ring b modulo m: each ring has the same number of blocks. A block adds, stores and waits in
  /// turn, so four of them fill a NIC. Simulated on h100x8-rail, 1 GB on 32 PEs takes 12.0 ms with one block a
  /// ring, 7.2 with two, 5.4 with four or eight. One is enough for short messages.
  static int suitable_blocks(const Team& team, int blocks) {
    constexpr int kBlocksOfNic = 4;
    return static_cast<int>(round_up(blocks > 1 ? kBlocksOfNic * blocks : 1, team.node_size));
  }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.partial = setup.template symmetric<T>(setup.max_count(), "partial");
    a.ready = setup.signals(setup.blocks(), "ready");
    a.arrived = setup.signals(setup.blocks(), "arrived");
    a.epochs = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Team& team = block.team();
    const int ring = block.index() % team.node_size;
    const int position = multi_ring_position(team, ring, block.pe());
    const RingPlace place{position, team.size, multi_ring_pe(team, ring, (position + 1) % team.size),
                          multi_ring_pe(team, ring, (position + team.size - 1) % team.size)};
    const Epoch epoch = block.next_epoch(a.epochs);
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const RingReduce<T> reduce{a.in, a.partial, a.out.local(), 0, a.arrived + block.index(), a.op, a.scale};
    ring_all_reduce<T>(block, place, reduce, a.out, a.ready + block.index(), part, epoch);
  }
};

TANDEM_GPU_KERNELS(AllReduceMultiRing, 512);
TANDEM_GPU_BETWEEN_NODES(AllReduceMultiRing);

}  // namespace tandem::kernels
