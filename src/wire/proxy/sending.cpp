// The messages of requests on their way out.
#include <algorithm>
#include <utility>

#include "wire/proxy/proxy.h"

namespace tandem::wire {

namespace {

/// Requests that are taken before messages are sent again.
constexpr int kTakenAtOnce = 32;
/// Less data is copied, so that its source may change at once.
constexpr std::size_t kLeastUncopied = 8192;

}  // namespace

/// Makes messages of requests, and sends those whose data is there. Data of several messages is read meanwhile, so a
/// copy that takes its time holds up no other. A PE that is not reached, or takes its time, holds up no message to
/// another one. Returns whether anything was begun or sent.
bool Proxy::send_requests() {
  if (setup_.is_over()) return drop_requests();
  bool has_moved = false;
  for (int i = 0; i < kTakenAtOnce && take_request(); ++i) has_moved = true;
  for (const int pe : busy_) has_moved |= send_requests_to(peer(pe));
  const auto is_idle = [this](int pe) {
    Peer& to = peer(pe);
    to.is_busy = !to.requests.empty() || !to.outgoing.empty();
    return !to.is_busy;
  };
  busy_.erase(std::remove_if(busy_.begin(), busy_.end(), is_idle), busy_.end());
  if (!busy_.empty()) std::rotate(busy_.begin(), busy_.begin() + 1, busy_.end());  // another one is the first to read
  if (has_news_) note();
  return has_moved;
}

bool Proxy::send_requests_to(Peer& to) {
  bool has_moved = false;
  while (begin_message(to)) has_moved = true;
  for (; to.under_way < to.outgoing.size() && set_out(to.outgoing[to.under_way]); ++to.under_way) has_moved = true;
  return note_sent(to) || has_moved;
}

/// Sends a message if its data is there. Data that stays is not copied, unless it is encrypted. Returns false if the
/// message has to wait.
bool Proxy::set_out(Outgoing& message) {
  if (message.reading && !setup_.access->is_read(*message.reading)) return false;
  const View data = message.data();
  const bool stays = message.beside || (message.reading && message.reading->stays);
  const bool is_uncopied = stays && data.size() >= kLeastUncopied && keys_.seal_choice() != Seal::kAll;
  if (is_uncopied) return send(message.header, data, [&message] { message.is_sent = true; });
  message.is_sent = send(message.header, data);
  return message.is_sent;
}

/// Notes the messages whose data is sent, with that of all before. Returns whether there are more than before.
bool Proxy::note_sent(Peer& to) {
  bool has_moved = false;
  for (; to.under_way > 0 && to.outgoing.front().is_sent; --to.under_way) {
    const Outgoing& next = to.outgoing.front();
    if (next.reading) end_reading(to, *next.reading);
    if (next.request != 0 && --record(next.request).unsent == 0) has_news_ = true;
    to.outgoing.pop_front();
    has_moved = true;
  }
  return has_moved;
}

void Proxy::end_reading(Peer& to, const Reading& reading) {
  setup_.access->release(reading);
  --to.readings;
  --put_readings_;
}

/// Notes all requests as sent, since the world is over. Returns whether there were any. Messages under way keep their
/// data, which may change now.
bool Proxy::drop_requests() {
  bool has_moved = !records_.empty() && records_.size() > sent_records_;
  while (take_request()) has_moved = true;
  for (const int pe : busy_) {
    Peer& to = peer(pe);
    to.requests.clear();
    for (; to.outgoing.size() > to.under_way; to.outgoing.pop_back())
      if (to.outgoing.back().reading) end_reading(to, *to.outgoing.back().reading);
    for (Outgoing& message : to.outgoing) message.request = 0;
    to.is_busy = false;
  }
  busy_.clear();
  orderings_.clear();
  for (Progress& one : records_) one.unsent = 0;
  if (has_moved) note();
  // The first request that waits for an answer gets none. Nothing looks for those behind it.
  if (!records_.empty()) records_.erase(records_.begin() + 1, records_.end());
  sent_records_ = records_.size();
  return has_moved;
}

/// Returns false if there is no room.
bool Proxy::send(Header header, View payload, const OnSent& sent) {
  header.from = setup_.place.me;
  header.number = peer(header.to).sent + 1;
  if (keys_.seal_choice() == Seal::kAll) {
    sealed_.assign(payload.begin(), payload.end());
    payload = sealed_;
  }
  const auto sealed = keys_.seal(header, sealed_);
  if (!endpoint_->send(header.to, sealed, payload, sent)) return false;
  ++peer(header.to).sent;
  return true;
}

}  // namespace tandem::wire
