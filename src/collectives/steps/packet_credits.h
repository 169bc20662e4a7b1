#pragma once
/// LL kernels whose senders wait for no data. Readers return credits, and round r is sent when all its readers have
/// read round r - kSlots. P is LLPacket or LL128Line.

#include "collectives/steps/packet_rounds.h"

namespace tandem::kernels {

template <class P>
struct CreditedPacketArgs {
  Symm<const std::byte> in;
  Symm<std::byte> out;
  Size count;  // bytes
  PacketStaging<P> staging;
  Signals released;  // [block][reader]: rounds that this PE's reader has read
  int root;
};

template <class P>
struct CreditedPacketKernel {
  using Packet = P;
  using Args = CreditedPacketArgs<P>;
  using Rounds = PacketRounds<P, std::byte>;
  static constexpr bool kEpochFirst = true;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.staging = PacketStaging<P>::of(setup, setup.max_count());
    args.released = setup.slots("released");
    return args;
  }

  /// Sends round i to the `readers` PEs first, first + 1, ..., and also stores it to `keep` unless that is null.
  /// `credits`: whether they return credits.
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, const Rounds& rounds, Size i, int first, int readers,
                                 std::byte* keep, bool credits = true) {
    constexpr Epoch kSlots = PacketStaging<P>::kSlots;
    const Range chunk = rounds.chunk(i);
    const Epoch round = rounds.round(i);
    const auto values = block.template load<std::byte>(a.in.local(), chunk);
    if (credits && round > kSlots && readers > 0) block.wait(block.slots(a.released), readers, round - kSlots);
    for (int k = 0; k < readers; ++k)
      block.template ll_put_fragment<std::byte>(rounds.packets(i, block.pe()), values, rounds.flag(i),
                                                (first + k) % block.num_pes());
    if (keep != nullptr) block.store(keep, chunk, values);
  }

  /// Receives round i from PE `sender`. This PE is the sender's reader number `reader`.
  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, const Rounds& rounds, Size i, int sender, int reader,
                                    bool credits = true) {
    const Range chunk = rounds.chunk(i);
    const auto values =
        block.template ll_get<std::byte, std::byte>(rounds.packets(i, sender).local(), chunk.size(), rounds.flag(i));
    if (credits) block.signal_after_reads(block.slots(a.released) + reader, rounds.round(i), sender);
    block.store(a.out.local(), chunk, values);
  }
};

}  // namespace tandem::kernels
