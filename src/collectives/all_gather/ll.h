#pragma once
/// Low-latency (LL) all-gather: packets, which are their own signals, go to every peer's staging.
///
/// It takes one trip without other signals. LLPacket doubles the bytes and suits small sizes; LL128Line adds an eighth,
/// for middle sizes. It runs in rounds of a fragment. It needs stores to every PE, so one node only. In-place allowed
/// (in == out + pe * count).

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_move.h"

namespace tandem::kernels {

template <class P>
struct AllGatherPackets : PacketKernel<P> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const PacketArgs<P>& a) {
    const int me = block.pe();
    const PacketRounds<P, std::byte> rounds(block, a.staging, a.count);
    const auto send = [&](Size i) {
      const auto own = block.template load<std::byte>(a.in.local(), rounds.chunk(i));
      block.template ll_put_peers<std::byte>(rounds.packets(i, me), own, rounds.flag(i));
    };
    rounds.exchange(block, send, [&](Size i) { receive_from_all(block, a, rounds, a.in.local(), i); });
  }
};
using AllGatherLL = AllGatherPackets<LLPacket>;
using AllGatherLL128 = AllGatherPackets<LL128Line>;

TANDEM_GPU_KERNEL(AllGatherLL, 512);
TANDEM_GPU_KERNEL(AllGatherLL128, 512);

}  // namespace tandem::kernels
