#pragma once
/// Messages through staging: a stripe is cut into chunks, each announced by the word of its slot.

#include "collectives/send_recv/channels.h"
#include "collectives/steps/put_counted.h"

namespace tandem::kernels {

/// Announces the size beside the staging. It has no order by itself; put_counted gives it. Its source may be written
/// again when its slot may.
template <class Role>
TANDEM_DEVICE void signal_size(Role& role, const SendRecvChannels& a, Size slot, Size own_slot,
                               const Message& message) {
  const auto bytes = static_cast<Epoch>(message.bytes);
  if (Epoch* const direct = role.remote(a.sizes + slot, message.peer)) return role.store_scalar(direct, bytes);
  role.store_scalar(a.sizes_out + own_slot, bytes);
  role.put_nbi(a.sizes + slot, a.sizes_out + own_slot, 1, message.peer);
}

/// The source may change after a `quiet`.
template <class Role>
TANDEM_DEVICE void send_chunks(Role& role, const SendRecvChannels& a, const Message& message, Lane& lane) {
  Range left = lane.stripe(a, message.bytes);
  for (bool first = true;; first = false) {
    const Epoch chunk = ++lane.chunks;
    const Size slot = a.slot_of(lane.there, chunk);
    const Size bytes = min(a.slot_bytes, left.size());
    const Symm<std::byte> to = a.staging + slot * a.slot_bytes;
    await_credit(role, a, lane.here, chunk);
    if (first) {
      if (a.has_heads(role, message.peer)) role.signal(a.heads + slot, Head::of(chunk, Head::kInStaging), message.peer);
      signal_size(role, a, slot, a.slot_of(lane.here, chunk), message);
      put_counted<std::byte>(role, to, message.data + left.begin, {0, bytes}, a.arrived + slot, chunk, message.peer);
    } else {
      role.put_signal_nbi(to, message.data + left.begin, bytes, a.arrived + slot, chunk, message.peer);
    }
    left.begin += bytes;
    if (left.empty()) return;
  }
}

/// Returns the size of the message that came. Only what fits of a longer one than expected is copied.
template <class Role>
TANDEM_DEVICE Size receive_chunks(Role& role, const SendRecvChannels& a, const Message& message, Lane& lane) {
  Size came = 0;
  Range left;
  for (bool first = true;; first = false) {
    const Epoch chunk = ++lane.chunks;
    const Size slot = a.slot_of(lane.here, chunk);
    role.wait(a.arrived + slot, 1, chunk);
    if (first) {
      came = static_cast<Size>(role.load_scalar((a.sizes + slot).local()));
      left = lane.stripe(a, came);
    }
    const Size bytes = min(a.slot_bytes, left.size());
    const Size fits = min(bytes, message.bytes - left.begin);
    if (fits > 0) role.copy(message.data + left.begin, (a.staging + slot * a.slot_bytes).local(), fits);
    role.signal_after_reads(a.credits + lane.there, chunk, message.peer);
    left.begin += bytes;
    if (left.empty()) return came;
  }
}

}  // namespace tandem::kernels
