#pragma once
/// Two-shot all-reduce with packets: every PE sends each peer that peer's shard, sums its own, and sends the sum to all
/// PEs.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries 2 (n-1)/n of the data, doubled by LLPacket and an eighth more with LL128Line, in two steps without
/// other signals. It runs in rounds of a fragment of each shard. It needs stores to all PEs. In-place allowed: every
/// element is sent before it is overwritten.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_packets.h"

namespace tandem::kernels {

template <class T, class P>
struct AllReduceTwoShotPackets {
  using Packet = P;
  static constexpr bool kEpochFirst = true;

  struct Args {
    Symm<const T> in;
    Symm<T> out;
    PacketStaging<P> staging;  // this PE's shard of every PE's input
    Symm<P> sums;              // the same layout: every PE's sums of its shard
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  /// The bytes sent to all peers together exceed the buffer's size.
  static int suitable_blocks(const Team&, int blocks) { return static_cast<int>(min(4 * blocks, 128)); }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    const Size shard = split(setup.max_count(), setup.pes(), 16).step();
    a.staging = PacketStaging<P>::of(setup, shard * Size{sizeof(T)}, "inputs");
    a.sums = setup.template symmetric<P>(a.staging.packets_in_all(setup), "sums");
    return a;
  }

  // Slots are safe as in PacketRounds::exchange. Before a PE sends round r it has gathered round r - 3, whose sums
  // contain every PE's packets of r - 3. Sums of round r go to a PE whose inputs of round r have arrived, so it has
  // gathered round r - 3, too.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Split shards = split(a.count, block.num_pes(), 16);
    const PacketRounds<P, T> rounds(block, a.staging, shards.step());
    const auto chunk = [&](int owner, Size i) {
      const Range shard = shards[owner];
      const Range of_shard = rounds.chunk(i);
      return Range{min(shard.begin + of_shard.begin, shard.end), min(shard.begin + of_shard.end, shard.end)};
    };
    const auto input = [&](Range range) { return load_input<T>(block, a.in.local(), range, a.op, a.scale); };
    const auto send = [&](Size i) {
      for (const int pe : block.peers_from_self()) {
        const Range theirs = chunk(pe, i);
        if (theirs.empty()) continue;
        const auto values = input(theirs);
        block.template ll_put_fragment<T>(rounds.packets(i, me), values, rounds.flag(i), pe);
      }
    };
    const auto reduce = [&](Size i) {
      const Range mine = chunk(me, i);
      if (mine.empty()) return;
      const auto sum =
          reduce_packets<T, /*kPair=*/false>(block, input(mine), static_cast<const P*>(rounds.packets(i, 0).local()),
                                             rounds.stride(), rounds.flag(i), a.op);
      block.template ll_put_peers<T>(a.sums + rounds.place(i, me), sum, rounds.flag(i));
      block.store(a.out.local(), mine, sum);
    };
    const auto gather = [&](Size i) {
      for (const int pe : block.peers_from_self()) {
        const Range theirs = chunk(pe, i);
        if (theirs.empty()) continue;
        block.store(a.out.local(), theirs,
                    block.template ll_get<T, T>((a.sums + rounds.place(i, pe)).local(), theirs.size(), rounds.flag(i)));
      }
    };
    for (Size i = 0; i < rounds.count() + 2; ++i) {
      if (i < rounds.count()) send(i);
      if (i >= 1 && i - 1 < rounds.count()) reduce(i - 1);
      if (i >= 2) gather(i - 2);
    }
  }
};
template <class T>
struct AllReduceTwoShotLL : AllReduceTwoShotPackets<T, LLPacket> {};
template <class T>
struct AllReduceTwoShotLL128 : AllReduceTwoShotPackets<T, LL128Line> {};

TANDEM_GPU_KERNELS(AllReduceTwoShotLL, 512);
TANDEM_GPU_KERNELS(AllReduceTwoShotLL128, 512);

}  // namespace tandem::kernels
