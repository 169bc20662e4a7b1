#pragma once
/// Short messages within a node: a stripe is one chunk of packets, which are their own signals.

#include "collectives/send_recv/channels.h"

namespace tandem::kernels {

/// The plain signal orders nothing, since packets need no order.
template <class Role>
TANDEM_DEVICE void send_packets(Role& role, const SendRecvChannels& a, const Message& message, Lane& lane) {
  const Epoch chunk = ++lane.chunks;
  const Size slot = a.slot_of(lane.there, chunk);
  const Range stripe = lane.stripe(a, message.bytes);
  await_credit(role, a, lane.here, chunk);
  role.signal(a.heads + slot, Head::of(chunk, message.bytes), message.peer);
  for (const Range tile : role.template tiles<std::byte>({0, stripe.size()}))
    role.template ll_put_fragment<std::byte>(a.packets_at(slot, tile.begin),
                                             role.template load<std::byte>(message.data + stripe.begin, tile),
                                             a.flag_of(chunk), message.peer);
}

/// Receives the next chunk, a message of `came` bytes. Only what fits of a longer one is stored.
template <class Role>
TANDEM_DEVICE void receive_packets(Role& role, const SendRecvChannels& a, const Message& message, Size came,
                                   Lane& lane) {
  const Epoch chunk = ++lane.chunks;
  const Range stripe = lane.stripe(a, came);
  const auto get = [&](Range range) {
    return role.template ll_get<std::byte, std::byte>(a.packets_at(a.slot_of(lane.here, chunk), range.begin).local(),
                                                      range.size(), a.flag_of(chunk));
  };
  for (const Range tile : role.template tiles<std::byte>({0, stripe.size()})) {
    const Range fits{tile.begin, min(tile.end, message.bytes - stripe.begin)};
    if (fits.end < tile.end) get(tile);  // all of it has to be here before its slot is free
    if (fits.begin < fits.end) role.store(message.data + stripe.begin, fits, get(fits));
  }
  role.signal_after_reads(a.credits + lane.there, chunk, message.peer);
}

}  // namespace tandem::kernels
