// The messages of requests on their way out.
#include <utility>

#include "wire/proxy/proxy.h"

namespace tandem::wire {

namespace {

/// Messages whose data may be read or under way at a time.
constexpr std::size_t kMostOutgoing = 32;
/// Less data is copied, so that its source may change at once.
constexpr std::size_t kLeastUncopied = 8192;

}  // namespace

/// Makes messages of requests, and sends those whose data is there. Data of several messages is read meanwhile, so a
/// copy that takes its time holds up no other. Returns whether anything was begun or sent.
bool Proxy::send_requests() {
  if (setup_.is_over()) return drop_requests();
  bool has_moved = false;
  while (outgoing_.size() < kMostOutgoing && (current_ || take_request()) && begin_message()) has_moved = true;
  for (; under_way_ < outgoing_.size() && set_out(outgoing_[under_way_]); ++under_way_) has_moved = true;
  return note_sent() || has_moved;
}

/// Sends a message if its data is there. Data that stays is not copied, unless it is encrypted. Returns false if the
/// message has to wait.
bool Proxy::set_out(Outgoing& message) {
  if (message.reading && !setup_.access->is_read(*message.reading)) return false;
  const View data = message.data();
  const bool is_uncopied =
      message.reading && message.reading->stays && data.size() >= kLeastUncopied && keys_.seal_choice() != Seal::kAll;
  if (is_uncopied) return send(message.header, data, [&message] { message.is_sent = true; });
  message.is_sent = send(message.header, data);
  return message.is_sent;
}

/// Notes the requests whose data is sent, with that of all before. Returns whether there are more than before.
bool Proxy::note_sent() {
  bool has_moved = false;
  for (; under_way_ > 0 && outgoing_.front().is_sent; --under_way_) {
    const Outgoing& next = outgoing_.front();
    if (next.reading) setup_.access->release(*next.reading);
    const auto ends = next.ends;
    outgoing_.pop_front();
    has_moved = true;
    if (!ends) continue;
    sent_ = *ends;
    note();
  }
  return has_moved;
}

/// Notes all requests as sent, since the world is over. Returns whether there were any. Messages under way keep their
/// data, which may change now.
bool Proxy::drop_requests() {
  bool has_moved = outgoing_.size() > under_way_;
  for (; outgoing_.size() > under_way_; outgoing_.pop_back())
    if (outgoing_.back().reading) setup_.access->release(*outgoing_.back().reading);
  for (Outgoing& message : outgoing_) has_moved |= std::exchange(message.ends, std::nullopt).has_value();
  for (; current_ || take_request(); current_.reset()) has_moved = true;
  sent_ = taken_;
  if (has_moved) note();
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
