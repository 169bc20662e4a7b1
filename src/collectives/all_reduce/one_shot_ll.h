#pragma once
/// One-shot all-reduce with packets: every PE sends its input to all, as packets that are their own signal (NCCL's LL
/// and LL128 protocols).
///
/// Fixed order: in[0] + in[1] + ... + in[n-1] on every PE, rounded to T once.
/// Each link carries n-1 times the data, doubled by LLPacket and an eighth more with LL128Line, in one step without
/// other signals. It runs in rounds of a fragment. It needs stores to all PEs. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_packets.h"

namespace tandem::kernels {

template <class T, class P>
struct AllReduceOneShotPackets : ReducePacketKernel<T, P> {
  /// The bytes sent to all peers together exceed the buffer's size.
  static int suitable_blocks(const Team&, int blocks) { return static_cast<int>(min(8 * blocks, 128)); }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const ReducePacketArgs<T, P>& a) {
    const int me = block.pe();
    const PacketRounds<P, T> rounds(block, a.staging, a.count);
    const auto own = [&](Range chunk) { return load_input<T>(block, a.in.local(), chunk, a.op, a.scale); };
    const auto send = [&](Size i) {
      const auto values = own(rounds.chunk(i));
      block.template ll_put_peers<T>(rounds.packets(i, me), values, rounds.flag(i));
    };
    const auto receive = [&](Size i) {
      const Range chunk = rounds.chunk(i);
      block.store(a.out.local(), chunk,
                  reduce_packets<T>(block, own(chunk), static_cast<const P*>(rounds.packets(i, 0).local()),
                                    rounds.stride(), rounds.flag(i), a.op));
    };
    rounds.exchange(block, send, receive);
  }
};
template <class T>
struct AllReduceOneShotLL : AllReduceOneShotPackets<T, LLPacket> {};
template <class T>
struct AllReduceOneShotLL128 : AllReduceOneShotPackets<T, LL128Line> {};

TANDEM_GPU_KERNELS(AllReduceOneShotLL, 512);
TANDEM_GPU_KERNELS(AllReduceOneShotLL128, 512);

}  // namespace tandem::kernels
