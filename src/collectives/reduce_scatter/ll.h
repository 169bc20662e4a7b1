#pragma once
/// Low-latency (LL) reduce-scatter: every PE sends each peer that peer's shard as packets, which are their own signals.
/// The owner sums them.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries (n-1)/n of the input, doubled by LLPacket and an eighth more with LL128Line, in one step without
/// other signals. It is for small and middle sizes. It runs in rounds of a fragment. It needs stores to all PEs.
/// In-place allowed: only the owner reads its shard.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_packets.h"

namespace tandem::kernels {

template <class T, class P>
struct ReduceScatterPackets : ReducePacketKernel<T, P> {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const ReducePacketArgs<T, P>& a) {
    const int me = block.pe();
    const PacketRounds<P, T> rounds(block, a.staging, a.count);
    const auto shard_of = [&](int pe, Range chunk) {
      return load_input<T>(block, a.in.local() + pe * a.count, chunk, a.op, a.scale);
    };
    const auto send = [&](Size i) {
      for (const int pe : block.peers_from_self()) {
        const auto values = shard_of(pe, rounds.chunk(i));
        block.template ll_put_fragment<T>(rounds.packets(i, me), values, rounds.flag(i), pe);
      }
    };
    const auto receive = [&](Size i) {
      const Range chunk = rounds.chunk(i);
      const auto own = shard_of(me, chunk);
      block.store(a.out.local(), chunk,
                  reduce_packets<T>(block, own, static_cast<const P*>(rounds.packets(i, 0).local()), rounds.stride(),
                                    rounds.flag(i), a.op));
    };
    rounds.exchange(block, send, receive);
  }
};
template <class T>
struct ReduceScatterLL : ReduceScatterPackets<T, LLPacket> {};
template <class T>
struct ReduceScatterLL128 : ReduceScatterPackets<T, LL128Line> {};

TANDEM_GPU_KERNELS(ReduceScatterLL, 512);
TANDEM_GPU_KERNELS(ReduceScatterLL128, 512);

}  // namespace tandem::kernels
