#pragma once
/// What the LL kernels have in common: bounded packet staging, used in rounds.

#include "tandem/block.h"

namespace tandem::kernels {

/// Staging that a plan owns: packets P (LLPacket, LL128Line) of at most `bytes` bytes from each PE, for each block.
template <class P>
struct PacketStaging {
  static constexpr Size kSlots = 4;
  static_assert(kSlots % 2 == 0, "see PacketRounds::flag");

  Symm<P> packets;  // [kSlots][block][PE][each]
  Epochs rounds;    // [block]: rounds over all calls
  Size bytes = 0;
  int each = 0;  // packets for them; far below 2^31, and 64-bit products take four times as long

  /// `max_bytes`: of one PE for one other, in the largest call. A block of 512 threads moves 16 KiB at once; more only
  /// saves rounds. Packets take up to twice the bytes.
  template <class Setup>
  static PacketStaging of(Setup& setup, Size max_bytes, const char* what = "packets") {
    PacketStaging staging;
    constexpr Size kBudget = Size{32} << 20;
    const Size fits = kBudget / (2 * kSlots * setup.blocks() * setup.pes()) / 16 * 16;
    // Blocks share elements out by 16, of up to 8 bytes: a part of a small call is one round.
    staging.bytes = max(16, min(min(fits, Size{64} << 10), split(max_bytes, setup.blocks(), 128).step()));
    staging.each = static_cast<int>(packets_for<P>(staging.bytes));
    staging.packets = setup.template symmetric<P>(staging.packets_in_all(setup), what);
    staging.rounds = setup.epochs();
    return staging;
  }
  template <class Setup>
  Size packets_in_all(const Setup& setup) const {
    return kSlots * setup.blocks() * setup.pes() * each;
  }
};

/// The rounds of one call of a block: round i moves the elements `piece(i)` of E, one fragment, in packets with flag
/// `flag(i)`.
///
/// Rounds are counted over all calls, alike on all PEs (`round(i)`, from 1), and slots take turns. Where everybody
/// sends to everybody in each round (`exchange`), that is safe by itself: a PE sends round r when it has everybody's
/// packets of round r - 2; their sender had then read all packets of round r - 4, which lay in the same slot. Warps
/// meet nowhere in a call and follow this rule each by itself; those with no elements in a last, partial round learn
/// nothing from it, though the next call takes its slot for granted, so there the block meets. Where somebody waits for
/// nobody, readers return credits. Only staging is written on peers.
template <class P, class E>
class PacketRounds {
 public:
  template <class Block>
  TANDEM_DEVICE PacketRounds(Block& block, const PacketStaging<P>& staging, Size count)
      : part_(split(count, block.count(), 16)[block.index()]),
        step_((*block.template tiles<E>({0, staging.bytes / Size{sizeof(E)}}).begin()).size()),
        count_(part_.size() <= step_ ? (part_.empty() ? 0 : 1) : ceil_div(part_.size(), step_)),
        stride_(staging.each),
        packets_(staging.packets),
        first_place_(block.index() * block.num_pes() * stride_),
        slot_(block.count() * block.num_pes() * stride_),
        last_before_(block.next_epoch(staging.rounds, static_cast<Epoch>(count_)) - 1) {}

  TANDEM_DEVICE Size count() const { return count_; }
  TANDEM_DEVICE Range piece(Size i) const {
    return {part_.begin + i * step_, min(part_.begin + (i + 1) * step_, part_.end)};
  }
  TANDEM_DEVICE Epoch round(Size i) const { return last_before_ + static_cast<Epoch>(i + 1); }
  /// Of a flag an LLPacket holds the lower half, which comes round after 2^32 rounds, hours of small calls. It is odd,
  /// so that it is never the 0 of a packet that nobody has written yet; the rounds of a slot are four apart, so the bit
  /// is no loss. What else a packet may hold is the flag of the last round that wrote it: a round's own only if all
  /// between, 2^32 or a multiple of it to the round, were too short to reach that packet. Flags of LL128Line, of 64
  /// bits, never come round.
  TANDEM_DEVICE Epoch flag(Size i) const { return round(i) | 1; }
  /// Where in the staging the packets of round i from PE `owner` lie.
  TANDEM_DEVICE Size place(Size i, int owner) const {
    return static_cast<int>(round(i) % Epoch{PacketStaging<P>::kSlots}) * slot_ + first_place_ + owner * stride_;
  }
  TANDEM_DEVICE Symm<P> packets(Size i, int owner) const { return packets_ + place(i, owner); }
  /// Packets between those of one PE and the next.
  TANDEM_DEVICE Size stride() const { return stride_; }

  /// send(i) and receive(i) of every round; a round is under way while the one before is received.
  ///
  /// The second round of the next call takes the slot of the third last one of this call. That one has been read by all
  /// of the block's warps before its first one sends the last round, without which no peer ends this call.
  template <class Block, class Send, class Receive>
  TANDEM_DEVICE void exchange(Block& block, const Send& send, const Receive& receive) const {
    if (count_ == 0) return;
    send(0);
    for (Size i = 1; i <= count_; ++i) {
      if (i >= 2 && i == count_ - 1) block.sync();
      if (i < count_) send(i);
      receive(i - 1);
    }
  }

 private:
  Range part_;
  Size step_;
  Size count_;
  int stride_;
  Symm<P> packets_;
  int first_place_;    // of this block
  int slot_;           // packets of one
  Epoch last_before_;  // as it was loaded: nothing has to wait for it before the first flag is needed
};

}  // namespace tandem::kernels
