#pragma once
/// Low-latency (LL) ring send-recv and pairwise swap: packets, which are their own signals, go to the receiver's
/// staging.
///
/// It takes one trip. LLPacket doubles the bytes and suits small sizes; LL128Line adds an eighth, for middle sizes. It
/// runs in rounds of a fragment; the next one is under way while one is received. A sender only waits for credits,
/// kSlots rounds later. It needs stores to the receiver, so one node only. Separate buffers.

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_credits.h"

namespace tandem::kernels {

template <class P>
struct PacketPairs : CreditedPacketKernel<P> {
  /// Sends to PE `to` while it receives from PE `from`. If they are the same PE, both wait for each other in each
  /// round, so that no credits are needed (see PacketRounds).
  template <class Block>
  TANDEM_DEVICE static void swap(Block& block, const CreditedPacketArgs<P>& a, int to, int from) {
    using Base = CreditedPacketKernel<P>;
    const PacketRounds<P, std::byte> rounds(block, a.staging, a.count);
    const bool credits = to != from;
    rounds.exchange(
        block, [&](Size i) { Base::send(block, a, rounds, i, to, 1, nullptr, credits); },
        [&](Size i) { Base::receive(block, a, rounds, i, from, 0, credits); });
  }
};

template <class P>
struct SendRecvPackets : PacketPairs<P> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const CreditedPacketArgs<P>& a) {
    const int n = block.num_pes();
    PacketPairs<P>::swap(block, a, (block.pe() + 1) % n, (block.pe() + n - 1) % n);
  }
};
using SendRecvLL = SendRecvPackets<LLPacket>;
using SendRecvLL128 = SendRecvPackets<LL128Line>;

/// The PEs 2i and 2i+1 swap; an odd last PE sends to itself.
template <class P>
struct ExchangePackets : PacketPairs<P> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const CreditedPacketArgs<P>& a) {
    const int me = block.pe();
    const int peer = (me ^ 1) < block.num_pes() ? me ^ 1 : me;
    PacketPairs<P>::swap(block, a, peer, peer);
  }
};
using ExchangeLL = ExchangePackets<LLPacket>;
using ExchangeLL128 = ExchangePackets<LL128Line>;

TANDEM_GPU_KERNEL(SendRecvLL, 512);
TANDEM_GPU_KERNEL(SendRecvLL128, 512);
TANDEM_GPU_KERNEL(ExchangeLL, 512);
TANDEM_GPU_KERNEL(ExchangeLL128, 512);

}  // namespace tandem::kernels
