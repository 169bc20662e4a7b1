#pragma once
/// Two-level all-to-all: within the node first, then along the rail.
///
/// PE l of a node collects what the PEs of its node have for PE l of each other node. It sends that in one message,
/// whose place in the receiver's output is contiguous. So a NIC carries its own rail only. With m PEs in a node it
/// carries m times fewer messages than if all PEs sent to all. Each byte for another node takes a store within the node
/// more. It needs stores within the node, put and signal along the rail. Separate buffers.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"
#include "tandem/block.h"

namespace tandem::kernels {

struct AllToAllTwoLevel {
  struct Args {
    Symm<const std::byte> in;
    Symm<std::byte> out;
    Symm<std::byte> staging;  // [node][capacity]: what this node has for the PE of this rail there, by sender
    Size capacity = 0;        // bytes
    Signals ready;            // [block][PE]: that PE has begun this call, so its output and staging may be written
    Signals collected;        // [node][PE of this node][block]: that PE's part for that node is in the staging
    Signals arrived;          // [block][PE]: that PE of this node has stored its part in the output
    Signals delivered;        // [block][node]: that node's bytes are in the output
    Epochs epochs;            // [block]
    Size count = 0;           // bytes of each pair
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    const int nodes = setup.team().nodes();
    a.capacity = round_up(setup.team().node_size * setup.max_count(), 16);
    a.staging = setup.template symmetric<std::byte>(nodes == 1 ? 0 : nodes * a.capacity, "staging");
    a.ready = setup.slots("ready");
    a.collected = setup.slots("collected");
    a.arrived = setup.slots("arrived");
    a.delivered = setup.signals(Size{setup.blocks()} * nodes, "delivered");
    a.epochs = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const int m = block.team().node_size;
    const int nodes = block.team().nodes();
    const int node = me / m;
    const int first = node * m;  // PE 0 of this node
    const Range part = own_part(block, a.count);
    const Range piece = split(m * a.count, block.count(), 16)[block.index()];
    const Signals ready = block.slots(a.ready);
    const Signals delivered = a.delivered + Size{block.index()} * nodes;
    const Epoch epoch = block.next_epoch(a.epochs);
    const auto node_peer = [&](int step) { return first + (me - first + step) % m; };
    // Stores this block's part of what this PE has for each PE of node `to` at a place in the PEs of this node.
    const auto store = [&](int to, Symm<std::byte> at, Signals word) {
      for (int step = 1; step <= m; ++step) {
        const int pe = node_peer(step);
        const Size receiver = to * m + (pe - first);
        block.copy(block.remote(at + part.begin, pe), a.in.local() + (receiver * a.count + part.begin), part.size());
        block.notify(word, epoch, pe);
      }
    };

    for (int step = 1; step < nodes; ++step) block.notify(ready + me, epoch, (me + step * m) % block.num_pes());
    for (int step = 1; step < m; ++step) block.notify(ready + me, epoch, node_peer(step));
    for (int step = 1; step < m; ++step) block.wait(ready + node_peer(step), 1, epoch);
    for (int step = 1; step < nodes; ++step) {
      const int to = (node + step) % nodes;
      const int receiver = to * m + (me - first);
      const Signals collected = a.collected + Size{to} * m * block.count();
      store(to, a.staging + (to * a.capacity + (me - first) * a.count),
            collected + (Size{me - first} * block.count() + block.index()));
      block.wait(collected, m * block.count(), epoch);
      block.wait(ready + receiver, 1, epoch);
      block.put_signal_nbi(a.out + (first * a.count + piece.begin), a.staging.local() + (to * a.capacity + piece.begin),
                           piece.size(), delivered + node, epoch, receiver);
    }
    store(node, a.out + me * a.count, block.slots(a.arrived) + me);
    block.wait(block.slots(a.arrived) + first, m, epoch);
    block.wait(delivered, node, epoch);
    block.wait(delivered + (node + 1), nodes - node - 1, epoch);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNEL(AllToAllTwoLevel, 512);
TANDEM_GPU_BETWEEN_NODES(AllToAllTwoLevel);

}  // namespace tandem::kernels
