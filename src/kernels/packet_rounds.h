#pragma once
/// What the LL kernels have in common: bounded packet staging, used in rounds.

#include "kernels/move.h"

namespace tandem::kernels {

struct PacketArgs {
  Symm<const std::byte> in;
  Symm<std::byte> out;
  Size count;              // bytes: of each PE, or of each pair
  Symm<LLPacket> packets;  // staging: [2][block][PE][PacketRounds::kPackets]
  Epoch* rounds;           // [block]: rounds over all calls
};

/// The rounds of one call of a block: round i moves `piece(i)`, at most kBytes bytes, in packets with flag `flag(i)`.
///
/// Rounds are counted over all calls, alike on all PEs, and the staging's halves take turns. That is safe because in
/// each round every PE reads packets that every other PE sent after it had finished the round before: whoever writes in
/// round r + 2 has read everybody's packets of round r + 1, so everybody has finished reading round r. Only staging is
/// written on peers.
class PacketRounds {
 public:
  static constexpr Size kBytes = Size{4} << 10;
  static constexpr Size kPackets = packets_for<LLPacket>(kBytes);

  template <class Block>
  TANDEM_DEVICE PacketRounds(Block& block, const PacketArgs& a)
      : part_(own_part(block, a.count)),
        packets_(a.packets + Size{block.index()} * block.num_pes() * kPackets),
        half_(Size{block.count()} * block.num_pes() * kPackets),
        before_(block.fetch_add(a.rounds + block.index(), static_cast<Epoch>(count()), Scope::kGpu, Order::kRelaxed)) {}

  TANDEM_DEVICE Size count() const { return ceil_div(part_.size(), kBytes); }
  TANDEM_DEVICE Range piece(Size i) const {
    return {part_.begin + i * kBytes, min(part_.begin + (i + 1) * kBytes, part_.end)};
  }
  TANDEM_DEVICE Epoch flag(Size i) const { return before_ + static_cast<Epoch>(i) + 1; }
  /// Where PE `owner`'s packets of round i lie, on any PE.
  TANDEM_DEVICE Symm<LLPacket> packets(Size i, int owner) const {
    return packets_ + static_cast<Size>(flag(i) % 2) * half_ + owner * kPackets;
  }

 private:
  Range part_;
  Symm<LLPacket> packets_;
  Size half_;
  Epoch before_;
};

struct PacketKernel {
  using Args = PacketArgs;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.packets =
        setup.template symmetric<LLPacket>(2 * Size{setup.blocks()} * setup.pes() * PacketRounds::kPackets, "packets");
    args.rounds = setup.template local<Epoch>(setup.blocks(), "rounds");
    return args;
  }
};

}  // namespace tandem::kernels
