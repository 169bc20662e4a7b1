#pragma once
/// LL and two-level all-gather combined, for small sizes on several nodes: packets cross between nodes and are
/// forwarded unopened.
///
/// Each PE packs its bytes once. It puts the packets to the PEs with its index on the other nodes, and stores them to
/// its node's PEs. Packets from another node are forwarded within the node one by one while they are also read. A
/// packet is its own signal all the way, so no step waits for a flag after the data. Triton-distributed's low-latency
/// all-gather does the same. It needs put between nodes (8 bytes of a put must arrive together). In-place allowed (in
/// == out + pe * count).

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

struct AllGatherTwoLevelLL : PacketKernel<LLPacket> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const int n = block.num_pes();
    const int size = block.team().node_size;
    const int first = me / size * size;  // of this node
    const PacketRounds<LLPacket, std::byte> rounds(block, a.staging, a.count);
    for (Size i = 0; i < rounds.count(); ++i) {
      const Range chunk = rounds.chunk(i);
      const Epoch flag = rounds.flag(i);
      const Size packets = packets_for<LLPacket>(chunk.size());
      const auto open = [&](int owner) {
        const LLPacket* const from = rounds.packets(i, owner).local();
        block.store(a.out.local() + owner * a.count, chunk,
                    block.template ll_get<std::byte, std::byte>(from, chunk.size(), flag));
      };
      const auto spread = [&](int owner) {
        const Symm<LLPacket> at = rounds.packets(i, owner);
        for (int step = 1; step < size; ++step)
          block.ll_forward(at, at.local(), packets, flag, first + (me - first + step) % size);
      };

      const Symm<LLPacket> own = rounds.packets(i, me);
      block.ll_put(own, a.in.local() + chunk.begin, chunk.size(), flag, me);
      open(me);  // packets that can be read are in place
      for (int pe = (me + size) % n; pe != me; pe = (pe + size) % n) block.put_nbi(own, own.local(), packets, pe);
      spread(me);
      for (int owner = (me + n - size) % n; owner != me; owner = (owner + n - size) % n) {
        spread(owner);
        open(owner);
      }
      for (int owner : block.peers_from_self())
        if (owner % size != me % size) open(owner);
      quiet_at_end(block);  // this round's packets have left, so the one after the next may pack there again
    }
  }
};

TANDEM_GPU_KERNEL(AllGatherTwoLevelLL, 512);
TANDEM_GPU_BETWEEN_NODES(AllGatherTwoLevelLL);

}  // namespace tandem::kernels
