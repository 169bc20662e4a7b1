#pragma once
/// Grouped send and receive: each PE's messages to and from any peers, all in one launch.
///
/// A message is cut into one stripe for each lane, and a stripe into chunks. A chunk goes to a slot of the receiver's
/// staging, and its number to the slot's word. The receiver copies it out and returns a credit. The first chunk of a
/// stripe carries the size of the message, by which both sides cut it. If a receiver expects another size, it still
/// gets the part that fits, and nothing is written beyond either size. It works within a node and between nodes.
/// Within a node, a stripe of few bytes is one chunk of packets (short_messages.h). Messages of a PE to itself are
/// copied.
///
/// A slot is never overwritten too early. Chunks are counted from 1 over all calls, for each pair and lane. Chunk k
/// uses slot k % slots and is sent only when k - slots credits have returned. A credit is given after the chunk was
/// copied out. Senders thus never wait before `slots` chunks are under way, also across calls. A slot's words therefore
/// only grow, with nothing else under way to them. Its size belongs to the chunk until the credit is given.
///
/// It never deadlocks. Every lane sends and receives concurrently, both in ascending order of the distance from sender
/// to receiver. Among all waits, take one with the smallest distance. Its peer is at no larger distance, hence at this
/// very message, so one of the two can continue.

#include "base/gpu_kernel.h"
#include "collectives/send_recv/short_messages.h"
#include "collectives/send_recv/staged_messages.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

/// Long arguments cost microseconds of a launch, so there is a form for few messages.
template <int MostMessages>
struct SendRecvPairs {
  using Packet = LLPacket;

  struct Args : SendRecvChannels {
    Message messages[MostMessages];  // the sends, then the receives; each in the order of distance, then of the
                                     // caller's list
    int numbers[MostMessages];       // places in the caller's lists
  };

  static constexpr std::size_t kMostMessages = MostMessages;
  static constexpr int kWarps = 4;  // of a role; half of the roles send, the others receive
  static constexpr int kThreads = 2 * SendRecvChannels::kLanesOfBlock * kWarps * 32;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    constexpr int kLanes = SendRecvChannels::kLanesOfBlock;
    const int first = block.index() % a.blocks_of_group() * kLanes;
    block.template parallel_for<kWarps>(2 * kLanes, [&](auto& role, int i) {
      if (i < kLanes)
        send_all(role, a, {first + i});
      else
        receive_all(role, a, {first + i - kLanes});
    });
  }

 private:
  template <class Role>
  TANDEM_DEVICE static void send_all(Role& role, const Args& a, Lane lane) {
    bool reads_later = false;
    for (int i = 0; i < a.sends; ++i) {
      const Message& message = a.messages[i];
      if (!is_mine(role, a, message.peer - role.pe(), lane.number)) continue;
      if (message.peer == role.pe()) {
        copy_own(role, a, i, lane);
        continue;
      }
      lane.turn_to(role, a, message.peer, a.sent);
      if (a.as_packets(role, message)) {
        send_packets(role, a, message, lane);
      } else {
        send_chunks(role, a, message, lane);
        reads_later = true;
      }
      role.store_scalar(a.sent + lane.here, lane.chunks);
    }
    if (reads_later) quiet_at_end(role);  // sources may change after the launch
  }

  template <class Role>
  TANDEM_DEVICE static void receive_all(Role& role, const Args& a, Lane lane) {
    for (int i = a.sends; i < a.sends + a.receives; ++i) {
      const Message& message = a.messages[i];
      if (message.peer == role.pe() || !is_mine(role, a, role.pe() - message.peer, lane.number)) continue;
      lane.turn_to(role, a, message.peer, a.received);
      Size came = a.has_heads(role, message.peer) ? await_head(role, a, message, lane) : Head::kInStaging;
      if (came != Head::kInStaging)
        receive_packets(role, a, message, came, lane);
      else
        came = receive_chunks(role, a, message, lane);
      role.store_scalar(a.received + lane.here, lane.chunks);
      if (came != message.bytes) report(role, a, i, came);
    }
  }

  /// Messages to this PE itself begin both lists.
  template <class Role>
  TANDEM_DEVICE static void copy_own(Role& role, const Args& a, int i, const Lane& lane) {
    const Message& from = a.messages[i];
    const Message& to = a.messages[a.sends + i];
    const Range stripe = lane.stripe(a, min(from.bytes, to.bytes));
    copy_unless_same(role, to.data + stripe.begin, from.data + stripe.begin, stripe.size());
    if (from.bytes != to.bytes) report(role, a, a.sends + i, from.bytes);
  }

  /// Block b serves every distance d with d % groups == b / blocks of a group. There are no more groups than distances
  /// between PEs, since messages of a PE to itself are rare.
  template <class Role>
  TANDEM_DEVICE static bool is_mine(const Role& role, const Args& a, int distance, int lane) {
    const int n = role.num_pes(), of_group = a.blocks_of_group();
    return lane < a.lanes && (distance + n) % n % (role.count() / of_group) == role.index() / of_group;
  }

  /// Returns the bytes of the pair's next message if it comes as packets, else Head::kInStaging. A block does not load
  /// signals, so comparisons find a size that is not the expected one.
  template <class Role>
  TANDEM_DEVICE static Size await_head(Role& role, const Args& a, const Message& message, const Lane& lane) {
    const Epoch chunk = lane.chunks + 1;
    const Signals head = a.heads + a.slot_of(lane.here, chunk);
    role.wait(head, 1, Head::of(chunk, Head::kInStaging));
    const Size expected = a.as_packets(role, message) ? message.bytes : Head::kInStaging;
    if (role.signal_test(head, Cmp::kEq, Head::of(chunk, expected))) return expected;
    Size came = 0;
    for (Size bit = (Head::kMostBytes + 1) / 2; bit > 0; bit /= 2)
      if (role.signal_test(head, Cmp::kGe, Head::of(chunk, came + bit))) came += bit;
    return came;
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
using FewPairs = SendRecvPairs<16>;

TANDEM_GPU_KERNEL(GroupPairs, GroupPairs::kThreads);
TANDEM_GPU_BETWEEN_NODES(GroupPairs);
TANDEM_GPU_KERNEL(FewPairs, FewPairs::kThreads);
TANDEM_GPU_BETWEEN_NODES(FewPairs);

}  // namespace tandem::kernels
