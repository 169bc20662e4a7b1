#pragma once
/// Grouped send and receive: each PE's messages to and from any peers, all in one launch.
///
/// A message is cut into one stripe for each lane, and a stripe into chunks. A chunk goes to a slot of the receiver's
/// staging by put_signal, whose value carries the chunk's number, its size and whether it is the stripe's last; the
/// receiver copies it out and returns a credit. Works within a node and between nodes.
///
/// Why a slot is never overwritten too early: chunks are counted from 1 over all calls, for each pair and lane; chunk k
/// uses slot k % slots and is sent only when k - slots credits have come back, and a credit is given after the chunk
/// was copied out. So senders wait for nobody until `slots` chunks are under way, also across calls. A slot's word
/// therefore only grows, with nothing else under way to it, and its value is the chunk's own until the credit is given.
///
/// Why it never deadlocks: every block sends and receives side by side, both in the order of the distance between the
/// PEs (sender to receiver, going up). Of all that wait, look at one with the least distance: its partner is at no
/// greater one, hence at this very message, and then one of the two can go on.

#include "tandem/block.h"

namespace tandem::kernels {

/// One message; `data` is local memory.
struct Message {
  std::byte* data;
  Size bytes;
  int peer;
};

/// What a chunk's signal says: bits 22.. the chunk's number, bits 1..21 its bytes, bit 0 whether it ends its stripe.
struct ChunkTag {
  static constexpr Size kMostBytes = Size{1} << 20;

  TANDEM_DEVICE static constexpr Epoch make(Epoch chunk, Size bytes, bool is_last) {
    return (chunk << 22) | (static_cast<Epoch>(bytes) << 1) | static_cast<Epoch>(is_last);
  }
  TANDEM_DEVICE static constexpr Size bytes(Epoch tag) {
    return static_cast<Size>((tag >> 1) & ((Epoch{1} << 21) - 1));
  }
  TANDEM_DEVICE static constexpr bool is_last(Epoch tag) { return (tag & 1) != 0; }
};

/// The first message that was not as long as its receiver expected. Words, so that it exists where data does not.
struct Mismatch {
  enum Word {
    kCount,
    kReceive,
    kSender,
    kLane,
    kExpected,
    kCame,
    kWords
  };  // kExpected, kCame: bytes of that lane's stripe
};

template <int MostMessages>
struct SendRecvPairs {
  struct Args {
    Symm<std::byte> staging;  // [sender][lane][slot][slot_bytes]
    Signals arrived;          // [sender][lane][slot]: ChunkTag
    Signals credits;          // [receiver][lane]: chunks copied out there
    Epoch* sent;              // [receiver][lane]: chunks
    Epoch* received;          // [sender][lane]: chunks
    Epoch* mismatch;          // [Mismatch::kWords]
    int lanes;
    int slots;
    Size slot_bytes;
    int sends;
    int receives;
    Message messages[MostMessages];  // the sends, then the receives; each in the order of distance, then of the
                                     // caller's list
    int numbers[MostMessages];       // places in the caller's lists
  };

  /// Half of the block each: sending, receiving.
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 2 * kWarps * 32;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    block.template parallel<kWarps, kWarps>(
        [&](auto& role) {
          for (int i = 0; i < a.sends; ++i)
            if (is_mine(role, a, a.messages[i].peer - role.pe())) send(role, a, a.messages[i]);
        },
        [&](auto& role) {
          for (int i = a.sends; i < a.sends + a.receives; ++i)
            if (is_mine(role, a, role.pe() - a.messages[i].peer)) receive(role, a, i);
        });
    block.quiet();
  }

 private:
  /// Block b serves lane b % lanes of every distance d with d % (blocks / lanes) == b / lanes.
  template <class Role>
  TANDEM_DEVICE static bool is_mine(const Role& role, const Args& a, int distance) {
    const int n = role.num_pes();
    return (distance + n) % n % (role.count() / a.lanes) == role.index() / a.lanes;
  }

  template <class Role>
  TANDEM_DEVICE static void send(Role& role, const Args& a, const Message& message) {
    const int lane = role.index() % a.lanes;
    const Size there = Size{role.pe()} * a.lanes + lane;  // this channel at the receiver
    const Size here = Size{message.peer} * a.lanes + lane;
    Range left = split(message.bytes, a.lanes, 16)[lane];
    Epoch chunk = role.load_scalar(a.sent + here);
    bool is_last = false;
    while (!is_last) {
      const Size bytes = min(a.slot_bytes, left.size());
      is_last = bytes == left.size();
      const Epoch slots = static_cast<Epoch>(a.slots);
      const Size slot = there * a.slots + static_cast<Size>(++chunk % slots);
      if (chunk > slots) role.wait(a.credits + here, 1, chunk - slots);
      role.put_signal_nbi(a.staging + slot * a.slot_bytes, message.data + left.begin, bytes, a.arrived + slot,
                          ChunkTag::make(chunk, bytes, is_last), message.peer);
      left.begin += bytes;
    }
    role.store_scalar(a.sent + here, chunk);
  }

  template <class Role>
  TANDEM_DEVICE static void receive(Role& role, const Args& a, int i) {
    const Message& message = a.messages[i];
    const int lane = role.index() % a.lanes;
    const Size here = Size{message.peer} * a.lanes + lane;
    const Size there = Size{role.pe()} * a.lanes + lane;  // this channel at the sender
    const Range stripe = split(message.bytes, a.lanes, 16)[lane];
    Epoch chunk = role.load_scalar(a.received + here);
    Size came = 0;
    bool is_last = false;
    while (!is_last) {
      const Size slot = here * a.slots + static_cast<Size>(++chunk % static_cast<Epoch>(a.slots));
      role.wait(a.arrived + slot, 1, ChunkTag::make(chunk, 0, false));
      const Epoch tag = role.load_scalar(&(a.arrived + slot).local()->value);
      const Size fits = min(ChunkTag::bytes(tag), max(0, stripe.size() - came));
      if (fits > 0) role.copy(message.data + stripe.begin + came, (a.staging + slot * a.slot_bytes).local(), fits);
      role.notify(a.credits + there, 1, message.peer, SignalOp::kAdd);
      came += ChunkTag::bytes(tag);
      is_last = ChunkTag::is_last(tag);
    }
    role.store_scalar(a.received + here, chunk);
    if (came != stripe.size()) report(role, a, i, stripe.size(), came);
  }

  template <class Role>
  TANDEM_DEVICE static void report(Role& role, const Args& a, int i, Size expected, Size came) {
    if (role.fetch_add(a.mismatch + Mismatch::kCount, Epoch{1}, Scope::kGpu, Order::kRelaxed) > 0) return;
    role.store_scalar(a.mismatch + Mismatch::kReceive, static_cast<Epoch>(a.numbers[i]));
    role.store_scalar(a.mismatch + Mismatch::kSender, static_cast<Epoch>(a.messages[i].peer));
    role.store_scalar(a.mismatch + Mismatch::kLane, static_cast<Epoch>(role.index() % a.lanes));
    role.store_scalar(a.mismatch + Mismatch::kExpected, static_cast<Epoch>(expected));
    role.store_scalar(a.mismatch + Mismatch::kCame, static_cast<Epoch>(came));
  }
};

}  // namespace tandem::kernels
