#pragma once
/// Two-level ("2-D") all-gather: between nodes first, then within.
///
/// Each PE puts its bytes to the PEs with its index on the other nodes. Every NIC thus carries its own rail only, and a
/// shard enters a node once. The PE then spreads its own bytes within its node, and the shards from other nodes as they
/// arrive. It needs put_signal only. With one node it is the push algorithm. In-place allowed (in == out + pe * count).

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

struct AllGatherTwoLevel : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const int size = block.team().node_size;
    const int nodes = block.team().nodes();
    const int first = me / size * size;  // of this node
    const Range part = own_part(block, a.count);
    const Symm<std::byte> out = a.out + part.begin;
    const Signals ready = block.slots(a.ready);
    const Signals arrived = block.slots(a.arrived);
    const Epoch epoch = block.next_epoch(a.epochs);
    const auto rail_peer = [&](int step) { return (me + step * size) % block.num_pes(); };
    const auto node_peer = [&](int step) { return first + (me - first + step) % size; };
    const auto send = [&](int owner, int pe) {
      const Symm<std::byte> chunk = out + owner * a.count;
      block.put_signal_nbi(chunk, chunk.local(), part.size(), arrived + owner, epoch, pe);
    };

    for (int step = 1; step < nodes; ++step) block.notify(ready + me, epoch, rail_peer(step));
    for (int step = 1; step < size; ++step) block.notify(ready + me, epoch, node_peer(step));
    copy_unless_same(block, out.local() + me * a.count, a.in.local() + part.begin, part.size());

    for (int step = 1; step < nodes; ++step) {
      block.wait(ready + rail_peer(step), 1, epoch);
      send(me, rail_peer(step));
    }
    for (int step = 1; step < size; ++step) {
      block.wait(ready + node_peer(step), 1, epoch);
      send(me, node_peer(step));
    }
    // PE p sends to p + step * size at step `step`, so the nearest node before this one comes first.
    for (int back = 1; back < nodes; ++back) {
      const int owner = rail_peer(nodes - back);
      block.wait(arrived + owner, 1, epoch);
      for (int step = 1; step < size; ++step) send(owner, node_peer(step));
    }
    wait_peers(block, a.arrived, epoch);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNEL(AllGatherTwoLevel, 512);
TANDEM_GPU_BETWEEN_NODES(AllGatherTwoLevel);

}  // namespace tandem::kernels
