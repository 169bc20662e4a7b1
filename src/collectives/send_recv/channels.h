#pragma once
/// The channels of grouped sends and receives: one for each lane of each pair of different PEs.

#include "tandem/block.h"
#include "tandem/send_recv.h"

namespace tandem::kernels {

/// One message; `data` is local memory.
struct Message {
  std::byte* data;
  Size bytes;
  int peer;
};

/// The first message whose length differed from the receiver's expectation. Words exist even without data.
struct Mismatch {
  enum Word { kCount, kReceive, kSender, kExpected, kCame, kWords };  // kCount: lanes with a mismatch
};

/// A word that announces a message within a node: the number of its first chunk, and its size if it goes as packets.
/// Words of a slot only grow. The number has 47 bits, enough for years of messages without a pause.
struct Head {
  static constexpr int kSizeBits = 17;
  static constexpr Size kMostBytes = (Size{1} << kSizeBits) - 1;  // of a message in packets
  static constexpr Size kInStaging = 0;                           // the size lies beside the staging

  TANDEM_DEVICE static Epoch of(Epoch chunk, Size bytes) { return chunk << kSizeBits | static_cast<Epoch>(bytes); }
};

/// The arguments of a launch beside its messages.
struct SendRecvChannels {
  /// A block serves this many lanes: while one waits, the other moves data.
  static constexpr int kLanesOfBlock = 2;

  Symm<std::byte> staging;  // [sender][lane][slot][slot_bytes]
  Symm<LLPacket> packets;   // [sender][lane][slot]: a stripe of at most packet_bytes
  Signals heads;            // [sender][lane][slot]: Head of the message whose stripe starts there
  Signals arrived;          // [sender][lane][slot]: number of the chunk in staging
  Symm<Epoch> sizes;        // [sender][lane][slot]: bytes of the message whose stripe starts in staging
  Epoch* sizes_out;         // [receiver][lane][slot]: the same, before a put to another node
  Signals credits;          // [receiver][lane]: the last chunk that was copied out there
  Epoch* sent;              // [receiver][lane]: chunks
  Epoch* received;          // [sender][lane]: chunks
  Epoch* mismatch;          // [Mismatch::kWords]
  int lanes;
  int slots;
  Size slot_bytes;
  Size packet_bytes;  // 0: no message goes as packets
  int sends;
  int receives;

  /// Blocks of each group, which serves some of the distances.
  TANDEM_DEVICE int blocks_of_group() const { return ceil_div(lanes, kLanesOfBlock); }
  /// Whether PE `pe`'s messages to this PE, or of this PE to it, begin with a head.
  template <class Role>
  TANDEM_DEVICE bool has_heads(const Role& role, int pe) const {
    return packet_bytes > 0 && role.reachable(pe);
  }
  template <class Role>
  TANDEM_DEVICE bool as_packets(const Role& role, const Message& message) const {
    return message.bytes != Head::kInStaging && message.bytes <= Head::kMostBytes && has_heads(role, message.peer) &&
           split(message.bytes, lanes, 16).step() <= packet_bytes;
  }
  TANDEM_DEVICE Size slot_of(Size channel, Epoch chunk) const {
    return channel * slots + static_cast<Size>(chunk % static_cast<Epoch>(slots));
  }
  /// The packets of the bytes from `begin` on.
  TANDEM_DEVICE Symm<LLPacket> packets_at(Size slot, Size begin) const {
    return packets + (slot * packets_for<LLPacket>(packet_bytes) + packets_for<LLPacket>(begin));
  }
  /// An LLPacket holds the lower half, which is odd, so never 0. A packet may also hold the flag of an earlier chunk of
  /// its slot. That flag equals the present one only after 2^31 chunks that were all too short to reach the packet.
  TANDEM_DEVICE static Epoch flag_of(Epoch chunk) { return 2 * chunk + 1; }
};

/// Waits until the slot of a chunk to the PE of `channel` has been read.
template <class Role>
TANDEM_DEVICE void await_credit(Role& role, const SendRecvChannels& a, Size channel, Epoch chunk) {
  const Epoch slots = static_cast<Epoch>(a.slots);
  if (chunk > slots) role.wait(a.credits + channel, 1, chunk - slots);
}

/// A role's lane of the pair that its last message belonged to. Messages of a pair follow each other. Each thread
/// counts chunks for itself, since the word that one thread stores is not there for the others without a barrier.
struct Lane {
  int number;
  int peer = -1;
  Size here = 0;     // the channel at this PE
  Size there = 0;    // and at the peer
  Epoch chunks = 0;  // so far

  /// `stored`: the counters of all channels.
  template <class Role>
  TANDEM_DEVICE void turn_to(Role& role, const SendRecvChannels& a, int to, const Epoch* stored) {
    if (to == peer) return;
    peer = to;
    here = Size{to - (to > role.pe() ? 1 : 0)} * a.lanes + number;
    there = Size{role.pe() - (role.pe() > to ? 1 : 0)} * a.lanes + number;
    chunks = role.load_scalar(stored + here);
  }
  /// The bytes of a message that go through it.
  TANDEM_DEVICE Range stripe(const SendRecvChannels& a, Size bytes) const { return split(bytes, a.lanes, 16)[number]; }
};

}  // namespace tandem::kernels
