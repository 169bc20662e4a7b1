#pragma once
/// Low-latency (LL) broadcast: the root sends packets, which are their own signals, to every PE's staging.
///
/// It takes one trip, with n-1 times the bytes out of the root, doubled by LLPacket and an eighth more with LL128Line.
/// It is for small and middle sizes. It runs in rounds of a fragment. The root only waits for credits, kSlots rounds
/// later. It needs stores to every PE, so one node only. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_credits.h"

namespace tandem::kernels {

template <class P>
struct BroadcastPackets : CreditedPacketKernel<P> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const CreditedPacketArgs<P>& a) {
    using Base = CreditedPacketKernel<P>;
    const int n = block.num_pes();
    const int reader = (block.pe() - a.root - 1 + n) % n;
    const PacketRounds<P, std::byte> rounds(block, a.staging, a.count);
    for (Size i = 0; i < rounds.count(); ++i) {
      if (block.pe() == a.root)
        Base::send(block, a, rounds, i, a.root + 1, n - 1, a.in.local() == a.out.local() ? nullptr : a.out.local());
      else
        Base::receive(block, a, rounds, i, a.root, reader);
    }
  }
};
using BroadcastLL = BroadcastPackets<LLPacket>;
using BroadcastLL128 = BroadcastPackets<LL128Line>;

TANDEM_GPU_KERNEL(BroadcastLL, 512);
TANDEM_GPU_KERNEL(BroadcastLL128, 512);

}  // namespace tandem::kernels
