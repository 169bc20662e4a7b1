#pragma once
/// Two-level all-reduce: within the node, along the rail, within the node.
///
/// PE l of a node sums slice l of the buffer over its node. The PEs of a rail divide their slice among themselves: each
/// puts its node's sums to the owners of the parts. An owner sums over the nodes and puts the result to its rail and
/// stores it in its node. Parts of other nodes are stored in the node as they arrive. Fixed order: within each node in
/// PE order, rounded to T; these sums in the order of the nodes, rounded to T. With m PEs in each of n nodes, a NIC
/// carries 2 (n-1)/n of 1/m of the data. It needs loads and stores within the node, put and signal along the rail.
/// In-place allowed: slice l of a node is read by PE l alone, and a part of it before a result of it is sent.

#include "base/gpu_kernel.h"
#include "collectives/steps/node_sums.h"
#include "collectives/steps/quiet_at_end.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceTwoLevel {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> sums;                 // [node][capacity]: this node's sums of the parts of this rail, by owner
    Symm<T> inbox;                // staging, [node][capacity]: the other nodes' sums of this PE's part
    Size capacity = 0;            // elements of each
    Symm<Accumulator<T>> scales;  // [block]: this PE's scale, for the PEs of its node (kPremulSum)
    Signals arrived;              // [block][PE]: that PE of this node has begun this call
    Signals finished;             // [block][PE]: that PE of this node has read and written what it has to here
    Signals delivered;            // [block][node]: that node's sums are in the inbox
    Signals gathered;             // [block][node]: the result of that node's part is in the output
    Epochs epochs;                // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    const int nodes = setup.team().nodes();
    a.capacity = round_up(part_of(setup.max_count(), setup.team().node_size, nodes, 0, 0).size(), 16);
    a.sums = setup.template symmetric<T>(nodes * a.capacity, "sums");
    a.inbox = setup.template symmetric<T>(nodes * a.capacity, "inbox");
    a.scales = setup.template symmetric<Accumulator<T>>(setup.blocks(), "scales");
    a.arrived = setup.slots("arrived");
    a.finished = setup.slots("finished");
    a.delivered = setup.signals(Size{setup.blocks()} * nodes, "delivered");
    a.gathered = setup.signals(Size{setup.blocks()} * nodes, "gathered");
    a.epochs = setup.epochs();
    return a;
  }

  // One inbox suffices: a PE ends a call with the results of its whole rail, which has read its inboxes by then.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int m = block.team().node_size;
    const int nodes = block.team().nodes();
    const int node = block.pe() / m;
    const int local = block.pe() % m;
    const int first = node * m;  // PE 0 of this node
    const Signals delivered = a.delivered + Size{block.index()} * nodes;
    const Signals gathered = a.gathered + Size{block.index()} * nodes;
    const Epoch epoch = block.next_epoch(a.epochs);
    const auto part = [&](int owner) { return part_of(a.count, m, nodes, local, owner); };
    // This block's piece, counted from the beginning of the part.
    const auto piece = [&](int owner) { return split(part(owner).size(), block.count(), 16)[block.index()]; };

    if (a.op == ReduceOp::kPremulSum) block.store_scalar((a.scales + block.index()).local(), a.scale);
    notify_node(block, a.arrived, first, m, epoch);
    block.wait(block.slots(a.arrived) + first, m, epoch);
    for (int step = 1; step <= nodes; ++step) {
      const int to = (node + step) % nodes;
      T* const sums = a.sums.local() + to * a.capacity;
      sum_within_node<T>(block, a.in + part(to).begin, piece(to), sums, first, m, a.op, a.scales + block.index(),
                         a.scale);
      if (to != node)
        block.put_signal_nbi(a.inbox + (node * a.capacity + piece(to).begin), sums + piece(to).begin, piece(to).size(),
                             delivered + node, epoch, to * m + local);
    }

    block.wait(delivered, node, epoch);
    block.wait(delivered + (node + 1), nodes - node - 1, epoch);
    const Symm<T> own = a.out + part(node).begin;
    for (const Range tile : block.template tiles<T>(piece(node)))
      block.store(
          own.local(), tile,
          sum_over_nodes<T>(block, a.sums.local() + node * a.capacity, a.inbox.local(), a.capacity, tile, a.op));
    for (int step = 1; step < nodes; ++step)
      block.put_signal_nbi(own + piece(node).begin, own.local() + piece(node).begin, piece(node).size(),
                           gathered + node, epoch, (node + step) % nodes * m + local);
    spread(block, own, piece(node), first, m);
    // Node p sends to p + step at step `step`, so the nearest node before this one comes first.
    for (int back = 1; back < nodes; ++back) {
      const int owner = (node + nodes - back) % nodes;
      block.wait(gathered + owner, 1, epoch);
      spread(block, a.out + part(owner).begin, piece(owner), first, m);
    }
    notify_node(block, a.finished, first, m, epoch);
    block.wait(block.slots(a.finished) + first, m, epoch);
    quiet_at_end(block);
  }

 private:
  /// Returns the part of slice `local` of the buffer whose results the PE of node `owner` computes.
  TANDEM_DEVICE static Range part_of(Size count, int m, int nodes, int local, int owner) {
    return split(split(count, m, 16)[local], nodes, 16)[owner];
  }

  /// Stores elements of this PE's output in the outputs of the others of its node.
  template <class Block>
  TANDEM_DEVICE static void spread(Block& block, Symm<T> out, Range piece, int first, int m) {
    for (const Range tile : block.template tiles<T>(piece)) {
      const auto values = block.template load<T>(out.local(), tile);
      for (int step = 1; step < m; ++step) block.store(out.on(first + (block.pe() - first + step) % m), tile, values);
    }
  }
};

TANDEM_GPU_KERNELS(AllReduceTwoLevel, 512);
TANDEM_GPU_BETWEEN_NODES(AllReduceTwoLevel);

}  // namespace tandem::kernels
