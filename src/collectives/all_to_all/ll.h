#pragma once
/// Low-latency (LL) all-to-all: packets, which are their own signals, go to every peer's staging.
///
/// It takes one trip without other signals. LLPacket doubles the bytes and suits small sizes; LL128Line adds an eighth,
/// for middle sizes. It runs in rounds of a fragment. It needs stores to every PE, so one node only. Separate buffers.

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_move.h"

namespace tandem::kernels {

template <class P>
struct AllToAllPackets : PacketKernel<P> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const PacketArgs<P>& a) {
    const int me = block.pe();
    const PacketRounds<P, std::byte> rounds(block, a.staging, a.count);
    const auto send = [&](Size i) {
      const Range chunk = rounds.chunk(i);
      for (const int pe : block.peers_from_self()) {
        const auto values = block.template load<std::byte>(a.in.local() + pe * a.count, chunk);
        block.template ll_put_fragment<std::byte>(rounds.packets(i, me), values, rounds.flag(i), pe);
      }
    };
    rounds.exchange(block, send, [&](Size i) { receive_from_all(block, a, rounds, a.in.local() + me * a.count, i); });
  }
};
using AllToAllLL = AllToAllPackets<LLPacket>;
using AllToAllLL128 = AllToAllPackets<LL128Line>;

TANDEM_GPU_KERNEL(AllToAllLL, 512);
TANDEM_GPU_KERNEL(AllToAllLL128, 512);

}  // namespace tandem::kernels
