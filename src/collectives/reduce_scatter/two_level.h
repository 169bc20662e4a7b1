#pragma once
/// Two-level reduce-scatter (Triton-distributed's 2-D): within the node first, then along the rail.
///
/// PE l of a node reads, for each node, the shard of that node's PE l from all PEs of its own node. It sums them and
/// puts the sum to its owner, which sums over the nodes. Shards of other nodes go first; the own node's is summed while
/// they travel. Fixed order: within each node in PE order, rounded to T; these sums in the order of the nodes, rounded
/// to T. Each NIC carries 1/m of the bytes of a flat algorithm between nodes (m PEs in a node). It needs loads within
/// the node, put and signal along the rail. In-place allowed: an owner's shard is read only for that owner.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
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
    using A = Accumulator<T>;
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
      sum_within_node(block, a, first, m, to * m + local, part, a.sums.local() + to * a.capacity);
      if (to != node)
        block.put_signal_nbi(inbox + (node * a.capacity + part.begin), a.sums.local() + to * a.capacity + part.begin,
                             part.size(), delivered + node, epoch, to * m + local);
    }
    notify_node(block, a.finished, first, m, epoch);

    block.wait(delivered, node, epoch);
    block.wait(delivered + (node + 1), nodes - node - 1, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      const auto sum = [&](int from) {
        return block.template load<A>((from == node ? a.sums : inbox).local() + from * a.capacity, tile);
      };
      auto total = sum(0);
      for (int from = 1; from < nodes; ++from) total = block.combine(a.op, total, sum(from));
      block.store(a.out.local(), tile, finished(std::move(total), a.op, block.num_pes()));
    }
    block.wait(block.slots(a.finished) + first, m, epoch);
    block.quiet();
  }

 private:
  template <class Block>
  TANDEM_DEVICE static void notify_node(Block& block, Signals words, int first, int m, Epoch epoch) {
    for (int pe = first; pe < first + m; ++pe) block.notify(block.slots(words) + block.pe(), epoch, pe);
  }

  /// Computes to[part] = this node's sum of the shard of PE `owner`.
  template <class Block>
  TANDEM_DEVICE static void sum_within_node(Block& block, const Args& a, int first, int m, int owner, Range part,
                                            T* to) {
    for (const Range tile : block.template tiles<T>(part)) {
      const auto input = [&](int i) {
        const int pe = first + i;
        const auto scale =
            a.op == ReduceOp::kPremulSum ? block.load_scalar((a.scales + block.index()).on(pe)) : a.scale;
        return load_input<T>(block, a.in.on(pe) + owner * a.count, tile, a.op, scale);
      };
      block.store(to, tile, reduce_in_order<T>(block, a.op, m, input));
    }
  }
};

TANDEM_GPU_KERNELS(ReduceScatterTwoLevel, 512);

}  // namespace tandem::kernels
