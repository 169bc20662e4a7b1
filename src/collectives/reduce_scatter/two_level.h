#pragma once
/// Two-level reduce-scatter (Triton-distributed's 2-D): within the node first, then along the rail.
///
/// PE l of a node reads, for each node, the shard of that node's PE l from all PEs of its own node. It sums them and
/// puts the sum to its owner, which sums over the nodes. Shards of other nodes go first; the own node's is summed while
/// they travel. Fixed order: within each node in PE order, rounded to T; these sums in the order of the nodes, rounded
/// to T. Each NIC carries 1/m of the bytes of a flat algorithm between nodes (m PEs in a node). It needs loads within
/// the node, put and signal along the rail. In-place allowed: an owner's shard is read only for that owner.

#include "base/gpu_kernel.h"
#include "collectives/steps/node_sums.h"
#include "collectives/steps/quiet_at_end.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct ReduceScatterTwoLevel {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> sums;                 // [node][capacity]: this node's sums, one for each node's PE on this rail
    Symm<T> inbox;                // staging, [2][node][capacity]: the sums of the other nodes, by epoch parity
    Size capacity = 0;            // elements of each
    Symm<Accumulator<T>> scales;  // [block]: this PE's scale, for the PEs of its node (kPremulSum)
    Signals arrived;              // [block][PE]: that PE of this node has its input in place
    Signals finished;             // [block][PE]: that PE of this node has read what it needs here
    Signals delivered;            // [block][node]: that node's sum is in the inbox
    Epochs epochs;                // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    const int nodes = setup.team().nodes();
    a.capacity = round_up(setup.max_count(), 16);
    a.sums = setup.template symmetric<T>(nodes * a.capacity, "sums");
    a.inbox = setup.template symmetric<T>(2 * nodes * a.capacity, "inbox");
    a.scales = setup.template symmetric<Accumulator<T>>(setup.blocks(), "scales");
    a.arrived = setup.slots("arrived");
    a.finished = setup.slots("finished");
    a.delivered = setup.signals(Size{setup.blocks()} * nodes, "delivered");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: a PE that finished call e+1 has a signal of e+1 from its whole rail, so the rail had finished e.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int m = block.team().node_size;
    const int nodes = block.team().nodes();
    const int node = block.pe() / m;
    const int local = block.pe() % m;
    const int first = node * m;  // PE 0 of this node
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Signals delivered = a.delivered + Size{block.index()} * nodes;
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<T> inbox = a.inbox + static_cast<Size>(epoch % 2) * nodes * a.capacity;

    if (a.op == ReduceOp::kPremulSum) block.store_scalar((a.scales + block.index()).local(), a.scale);
    notify_node(block, a.arrived, first, m, epoch);
    block.wait(block.slots(a.arrived) + first, m, epoch);
    for (int step = 1; step <= nodes; ++step) {
      const int to = (node + step) % nodes;
      sum_within_node<T>(block, a.in + (to * m + local) * a.count, part, a.sums.local() + to * a.capacity, first, m,
                         a.op, a.scales + block.index(), a.scale);
      if (to != node)
        block.put_signal_nbi(inbox + (node * a.capacity + part.begin), a.sums.local() + to * a.capacity + part.begin,
                             part.size(), delivered + node, epoch, to * m + local);
    }
    notify_node(block, a.finished, first, m, epoch);

    block.wait(delivered, node, epoch);
    block.wait(delivered + (node + 1), nodes - node - 1, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      const T* const own = a.sums.local() + node * a.capacity;
      block.store(a.out.local(), tile, sum_over_nodes<T>(block, own, inbox.local(), a.capacity, tile, a.op));
    }
    block.wait(block.slots(a.finished) + first, m, epoch);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNELS(ReduceScatterTwoLevel, 512);
TANDEM_GPU_BETWEEN_NODES(ReduceScatterTwoLevel);

}  // namespace tandem::kernels
