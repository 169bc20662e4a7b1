#pragma once
/// Grouped send and receive: each PE's messages to and from any peers, all in one launch.
///
/// A message is cut into one stripe for each lane, and a stripe into chunks. A chunk goes to a slot of the receiver's
/// staging, and its number to the slot's word. The receiver copies it out and returns a credit. The first chunk of a
/// stripe carries the size of the message, by which both sides cut it. If a receiver expects another size, it still
/// gets the part that fits, and nothing is written beyond either size. It works within a node and between nodes.
///
/// A slot is never overwritten too early. Chunks are counted from 1 over all calls, for each pair and lane. Chunk k
/// uses slot k % slots and is sent only when k - slots credits have returned. A credit is given after the chunk was
/// copied out. Senders thus never wait before `slots` chunks are under way, also across calls. A slot's word therefore
/// only grows, with nothing else under way to it. Its size belongs to the chunk until the credit is given.
///
/// It never deadlocks. Every block sends and receives concurrently, both in ascending order of the distance from sender
/// to receiver. Among all waits, take one with the smallest distance. Its peer is at no larger distance, hence at this
/// very message, so one of the two can continue.

#include "base/gpu_kernel.h"
#include "collectives/steps/put_counted.h"
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

template <int MostMessages>
struct SendRecvPairs {
  struct Args {
    Symm<std::byte> staging;  // [sender][lane][slot][slot_bytes]
    Signals arrived;          // [sender][lane][slot]: number of the chunk there
    Symm<Epoch> sizes;        // [sender][lane][slot]: bytes of the message whose stripe starts there
    Epoch* sizes_out;         // [receiver][lane][slot]: the same, before a put to another node
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

  /// Half of the block sends, the other half receives.
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 2 * kWarps * 32;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    block.template parallel<kWarps, kWarps>(
        [&](auto& role) {
          Channel channel;
          for (int i = 0; i < a.sends; ++i)
            if (is_mine(role, a, a.messages[i].peer - role.pe())) send(role, a, a.messages[i], channel);
        },
        [&](auto& role) {
          Channel channel;
          for (int i = a.sends; i < a.sends + a.receives; ++i)
            if (is_mine(role, a, role.pe() - a.messages[i].peer)) receive(role, a, i, channel);
        });
    block.quiet();
  }

 private:
  /// The chunks so far of the pair that the last message belonged to. Messages of a pair follow each other. Each thread
  /// counts for itself, since the word that one thread stores is not there for the others without a barrier.
  struct Channel {
    int peer = -1;
    Epoch chunks = 0;

    template <class Role>
    TANDEM_DEVICE Epoch next(Role& role, int of, const Epoch* stored) {
      if (of != peer) chunks = role.load_scalar(stored);
      peer = of;
      return chunks + 1;
    }
  };

  /// Block b serves lane b % lanes of every distance d with d % (blocks / lanes) == b / lanes.
  template <class Role>
  TANDEM_DEVICE static bool is_mine(const Role& role, const Args& a, int distance) {
    const int n = role.num_pes();
    return (distance + n) % n % (role.count() / a.lanes) == role.index() / a.lanes;
  }

  template <class Role>
  TANDEM_DEVICE static void send(Role& role, const Args& a, const Message& message, Channel& channel) {
    const int lane = role.index() % a.lanes;
    const Size there = Size{role.pe()} * a.lanes + lane;  // this channel at the receiver
    const Size here = Size{message.peer} * a.lanes + lane;
    const Epoch slots = static_cast<Epoch>(a.slots);
    const Epoch first = channel.next(role, message.peer, a.sent + here);
    Range left = split(message.bytes, a.lanes, 16)[lane];
    Epoch chunk = first;
    for (;; ++chunk) {
      const Size bytes = min(a.slot_bytes, left.size());
      const Size of_channel = static_cast<Size>(chunk % slots);
      const Size slot = there * a.slots + of_channel;
      const Symm<std::byte> to = a.staging + slot * a.slot_bytes;
      if (chunk > slots) role.wait(a.credits + here, 1, chunk - slots);
      if (chunk == first) {
        signal_size(role, a, slot, here * a.slots + of_channel, message);
        put_counted<std::byte>(role, to, message.data + left.begin, {0, bytes}, a.arrived + slot, chunk, message.peer);
      } else {
        role.put_signal_nbi(to, message.data + left.begin, bytes, a.arrived + slot, chunk, message.peer);
      }
      left.begin += bytes;
      if (left.empty()) break;
    }
    role.store_scalar(a.sent + here, chunk);
    channel.chunks = chunk;
  }

  /// It has no order by itself; put_counted gives it. Its source may be written again when its slot may.
  template <class Role>
  TANDEM_DEVICE static void signal_size(Role& role, const Args& a, Size slot, Size own_slot, const Message& message) {
    const auto bytes = static_cast<Epoch>(message.bytes);
    if (Epoch* const direct = role.remote(a.sizes + slot, message.peer)) return role.store_scalar(direct, bytes);
    role.store_scalar(a.sizes_out + own_slot, bytes);
    role.put_nbi(a.sizes + slot, a.sizes_out + own_slot, 1, message.peer);
  }

  template <class Role>
  TANDEM_DEVICE static void receive(Role& role, const Args& a, int i, Channel& channel) {
    const Message& message = a.messages[i];
    const int lane = role.index() % a.lanes;
    const Size here = Size{message.peer} * a.lanes + lane;
    const Size there = Size{role.pe()} * a.lanes + lane;  // this channel at the sender
    const Epoch first = channel.next(role, message.peer, a.received + here);
    Size came = 0;  // of the whole message
    Range left;
    Epoch chunk = first;
    for (;; ++chunk) {
      const Size slot = here * a.slots + static_cast<Size>(chunk % static_cast<Epoch>(a.slots));
      role.wait(a.arrived + slot, 1, chunk);
      if (chunk == first) {
        came = static_cast<Size>(role.load_scalar((a.sizes + slot).local()));
        left = split(came, a.lanes, 16)[lane];
      }
      const Size bytes = min(a.slot_bytes, left.size());
      const Size fits = min(bytes, message.bytes - left.begin);
      if (fits > 0) role.copy(message.data + left.begin, (a.staging + slot * a.slot_bytes).local(), fits);
      role.notify(a.credits + there, 1, message.peer, SignalOp::kAdd);
      left.begin += bytes;
      if (left.empty()) break;
    }
    role.store_scalar(a.received + here, chunk);
    channel.chunks = chunk;
    if (came != message.bytes) report(role, a, i, came);
  }

  template <class Role>
  TANDEM_DEVICE static void report(Role& role, const Args& a, int i, Size came) {
    if (role.fetch_add(a.mismatch + Mismatch::kCount, Epoch{1}, Scope::kGpu, Order::kRelaxed) > 0) return;
    role.store_scalar(a.mismatch + Mismatch::kReceive, static_cast<Epoch>(a.numbers[i]));
    role.store_scalar(a.mismatch + Mismatch::kSender, static_cast<Epoch>(a.messages[i].peer));
    role.store_scalar(a.mismatch + Mismatch::kExpected, static_cast<Epoch>(a.messages[i].bytes));
    role.store_scalar(a.mismatch + Mismatch::kCame, static_cast<Epoch>(came));
  }
};
using GroupPairs = SendRecvPairs<SendRecvGroup::kMostMessages>;

TANDEM_GPU_KERNEL(GroupPairs, GroupPairs::kThreads);
TANDEM_GPU_BETWEEN_NODES(GroupPairs);

}  // namespace tandem::kernels
