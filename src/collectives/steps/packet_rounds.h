#pragma once
/// Common parts of LL kernels: bounded packet staging, used in rounds.

#include "tandem/block.h"

namespace tandem::kernels {

/// Staging of a plan: packets P (LLPacket, LL128Line) of at most `bytes` bytes from each PE, for each block.
template <class P>
struct PacketStaging {
  static constexpr Size kSlots = 4;
  static_assert(kSlots % 2 == 0, "see PacketRounds::flag");

  Symm<P> packets;  // [kSlots][block][PE][each]
  Epochs rounds;    // [block]: rounds over all calls
  Size bytes = 0;
  int each = 0;  // packets of one slot; far below 2^31, since 64-bit products take four times as long

  /// `max_bytes` is the size from one PE to another in the largest call. A block of 512 threads moves 16 KiB at once;
  /// more only saves rounds. Packets take up to twice the bytes.
  template <class Setup>
  static PacketStaging of(Setup& setup, Size max_bytes, const char* what = "packets") {
    PacketStaging staging;
    constexpr Size kBudget = Size{32} << 20;
    const Size fits = kBudget / (2 * kSlots * setup.blocks() * setup.pes()) / 16 * 16;
    // Blocks divide elements in units of 16, of up to 8 bytes, so that a small call's part is one round.
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

/// The number of rounds of a block whose caller divides the elements itself.
struct Pieces {
  Size count = 0;
};

/// The rounds of one call of a block. Round i moves the elements `piece(i)` of E, one fragment, in packets with flag
/// `flag(i)`.
///
/// Rounds are counted over all calls, alike on all PEs (`round(i)`, from 1), and use the slots cyclically.
///
/// In `exchange` every PE sends to every PE in each round, which is safe by itself. A PE sends round r when it has
/// every PE's packets of round r - 2. Their sender had then read all packets of round r - 4, which were in the same
/// slot.
///
/// Warps do not synchronise within a call and follow this rule separately. Warps without elements in a last, partial
/// round get no packets of it, though the next call assumes that its slot is free. So the block synchronises there.
///
/// If a sender does not wait for data, readers return credits. Only staging is written on peers.
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

  /// Rounds without a `chunk`.
  template <class Block>
  TANDEM_DEVICE PacketRounds(Block& block, const PacketStaging<P>& staging, Pieces pieces)
      : part_{0, pieces.count},
        step_(1),
        count_(pieces.count),
        stride_(staging.each),
        packets_(staging.packets),
        first_place_(block.index() * block.num_pes() * stride_),
        slot_(block.count() * block.num_pes() * stride_),
        last_before_(block.next_epoch(staging.rounds, static_cast<Epoch>(count_)) - 1) {}

  TANDEM_DEVICE Size count() const { return count_; }
  TANDEM_DEVICE Range chunk(Size i) const {
    return {part_.begin + i * step_, min(part_.begin + (i + 1) * step_, part_.end)};
  }
  TANDEM_DEVICE Epoch round(Size i) const { return last_before_ + static_cast<Epoch>(i + 1); }
  /// An LLPacket holds the lower half of a flag, which wraps after 2^32 rounds, hours of small calls. The flag is odd,
  /// so that it is never 0, the value of a packet that was never written. The rounds of a slot are four apart, so the
  /// lost bit does no harm. A packet may also hold the flag of the last round that wrote it. That flag equals the
  /// present one only if 2^32 rounds, or a multiple, were all too short to reach the packet. Flags of LL128Line have 64
  /// bits and never wrap.
  TANDEM_DEVICE Epoch flag(Size i) const { return round(i) | 1; }
  /// Returns the place in the staging of the packets of round i from PE `owner`.
  TANDEM_DEVICE Size place(Size i, int owner) const {
    return static_cast<int>(round(i) % Epoch{PacketStaging<P>::kSlots}) * slot_ + first_place_ + owner * stride_;
  }
  TANDEM_DEVICE Symm<P> packets(Size i, int owner) const { return packets_ + place(i, owner); }
  /// Returns the number of packets from one PE's to the next PE's.
  TANDEM_DEVICE Size stride() const { return stride_; }

  /// Calls send(i) and receive(i) of every round. A round is under way while the previous one is received.
  ///
  /// The second round of the next call takes the slot of the third last round of this call. All of the block's warps
  /// have read that one before the first of them sends the last round, without which no peer ends this call.
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
  Epoch last_before_;  // as loaded: nothing waits for it before the first flag is needed
};

}  // namespace tandem::kernels
