#pragma once
/// Broadcast as a scatter over the other n-1 PEs, which forward their parts to each other, by packets, which are their
/// own signals.
///
/// It takes two trips. The bytes leave the root once, doubled by LLPacket and an eighth more with LL128Line, so the
/// time hardly grows with n. It is for middle sizes. It runs in rounds of a fragment of each part; the next one is
/// under way while one is received. Senders only wait for credits, kSlots rounds later. It needs stores to every PE, so
/// one node only. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_credits.h"

namespace tandem::kernels {

template <class P>
struct BroadcastScatterPackets : CreditedPacketKernel<P> {
  using Base = CreditedPacketKernel<P>;
  using Args = CreditedPacketArgs<P>;

  /// A block sends a part of the buffer to each peer.
  static int suitable_blocks(const Team&, int blocks) { return static_cast<int>(min(4 * blocks, 128)); }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.staging = PacketStaging<P>::of(setup, split(setup.max_count(), max(1, setup.pes() - 1), 16).step());
    args.released = setup.slots("released");
    return args;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int others = max(1, n - 1);
    const Split parts = split(a.count, others, 16);
    const PacketRounds<P, std::byte> rounds(block, a.staging, parts.step());
    const auto other = [&](int i) { return (a.root + 1 + i) % n; };
    const auto chunk = [&](int part, Size i) {
      const Range whole = parts[part];
      const Range of_part = rounds.chunk(i);
      return Range{min(whole.begin + of_part.begin, whole.end), min(whole.begin + of_part.end, whole.end)};
    };
    // Reader number `reader` of this PE's packets has read those of round i - kSlots.
    const auto wait_for_credits = [&](int readers, Size i) {
      constexpr Epoch kSlots = PacketStaging<P>::kSlots;
      if (rounds.round(i) > kSlots && readers > 0)
        block.wait(block.slots(a.released), readers, rounds.round(i) - kSlots);
    };
    const auto get = [&](int part, Size i, int sender, int reader) {
      const Range theirs = chunk(part, i);
      auto values =
          block.template ll_get<std::byte, std::byte>(rounds.packets(i, sender).local(), theirs.size(), rounds.flag(i));
      block.signal_after_reads(block.slots(a.released) + reader, rounds.round(i), sender);
      block.store(a.out.local(), theirs, values);
      return values;
    };

    if (block.pe() == a.root) {
      for (Size i = 0; i < rounds.count(); ++i) {
        wait_for_credits(n - 1, i);
        for (int part = 0; part < others; ++part) {
          const Range own = chunk(part, i);
          const auto values = block.template load<std::byte>(a.in.local(), own);
          if (n > 1)
            block.template ll_put_fragment<std::byte>(rounds.packets(i, a.root), values, rounds.flag(i), other(part));
          if (a.in.local() != a.out.local()) block.store(a.out.local(), own, values);
        }
      }
      return;
    }
    const int mine = (block.pe() - a.root - 1 + n) % n;
    const auto pass_on = [&](Size i) {
      const auto values = get(mine, i, a.root, mine);
      wait_for_credits(n - 2, i);
      for (int step = 1; step < others; ++step)
        block.template ll_put_fragment<std::byte>(rounds.packets(i, block.pe()), values, rounds.flag(i),
                                                  other((mine + step) % others));
    };
    // This PE is the (others - step)-th one after the owner of the part that it gets at `step`.
    const auto collect = [&](Size i) {
      for (int step = 1; step < others; ++step) {
        const int part = (mine + step) % others;
        get(part, i, other(part), others - step - 1);
      }
    };
    rounds.exchange(block, pass_on, collect);
  }
};
using BroadcastScatterLL128 = BroadcastScatterPackets<LL128Line>;

TANDEM_GPU_KERNEL(BroadcastScatterLL128, 512);

}  // namespace tandem::kernels
