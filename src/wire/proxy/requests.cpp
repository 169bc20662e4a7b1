// The requests of this PE, which become messages.
#include <algorithm>
#include <utility>

#include "wire/proxy/proxy.h"

namespace tandem::wire {

namespace {

/// Requests that are taken and not done. Numbers of those of the mailbox, and of its ring, are as many.
constexpr std::size_t kMostTaken = 4096;
/// Messages to a PE whose data may be read or under way at a time.
constexpr std::size_t kMostOutgoing = 32;

Size messages_of(Size bytes, Size piece) { return std::max((bytes + piece - 1) / piece, Size{1}); }

}  // namespace

/// Takes the next request. Returns false if there is none. Requests that kernels posted before the host's go first: a
/// flush of the host follows the work that it has waited for.
bool Proxy::take_request() {
  if (records_.size() >= kMostTaken) return false;
  const bool has_request = mailbox_.has_request();
  if (KernelRequests* const kernels = setup_.access->kernel_requests()) {
    if (const auto next = kernels->take()) {
      ++taken_.kernels;
      queue(*next);
      return true;
    }
  }
  if (!has_request) return false;
  Request request;
  taken_.mailbox = mailbox_.take(request);
  queue(request);
  return true;
}

/// Puts a request behind those to the same PE. Requests to other PEs need no order.
void Proxy::queue(const Request& request) {
  Progress progress{taken_};
  const std::uint64_t number = first_record_ + records_.size();
  if (request.precedes_later && has_one_far_pe_) {
    // All requests go to one PE, in their order. A later flush asks it.
  } else if (request.kind == Request::Kind::kFlush) {
    progress.is_flush = true;
    std::vector<int> flushed;
    for (int pe = 0; pe < setup_.place.pes; ++pe) {
      if (!std::exchange(peer(pe).is_unflushed, false)) continue;
      queue_for(pe, {request, number});
      flushed.push_back(pe);
    }
    progress.unsent = progress.unanswered = static_cast<Size>(flushed.size());
    if (!flushed.empty()) orderings_.push_back({number, flushed});
    if (request.precedes_later)
      for (Ordering& one : orderings_) one.binds_behind = std::min(one.binds_behind, number);
  } else if (request.kind == Request::Kind::kPut) {
    queue_for(request.pe, {request, number});
    progress.unsent = messages_of(request.bytes, piece_of(request.bytes));
    peer(request.pe).is_unflushed = true;
  } else if (request.bytes > 0) {
    queue_for(request.pe, {request, number});
    progress.unsent = progress.unanswered = messages_of(request.bytes, piece_);
  }
  records_.push_back(progress);
  has_news_ |= progress.unsent == 0;
}

void Proxy::queue_for(int pe, const Current& current) {
  peer(pe).requests.push_back(current);
  if (!std::exchange(peer(pe).is_busy, true)) busy_.push_back(pe);
}

/// Makes the next message to a PE. Returns false if there is none, or no room for its data.
bool Proxy::begin_message(Peer& to) {
  if (to.requests.empty() || to.outgoing.size() >= kMostOutgoing) return false;
  Current& current = to.requests.front();
  if (waits_for_flush(current)) return false;
  const Request& request = current.request;
  const Request::Kind kind = request.kind;
  const bool has_to_read =
      kind == Request::Kind::kPut && request.bytes > 0 && !request.holds_data && !request.has_data_beside;
  if (has_to_read && !may_read_for(to)) return false;
  const bool is_last = kind == Request::Kind::kPut   ? begin_put(to, current)
                       : kind == Request::Kind::kGet ? begin_get(to, current)
                                                     : begin_flush(to, current);
  if (is_last) to.requests.pop_front();
  return true;
}

/// Returns whether other PEs have to answer an earlier flush before. The PE itself carries out requests, and answers
/// them, in their order.
bool Proxy::waits_for_flush(const Current& current) const {
  if (current.request.kind == Request::Kind::kFlush) return false;
  const auto is_other = [&](int pe) { return pe != current.request.pe; };
  return std::any_of(orderings_.begin(), orderings_.end(), [&](const Ordering& ordering) {
    return ordering.binds_behind < current.number && std::any_of(ordering.pes.begin(), ordering.pes.end(), is_other);
  });
}

/// Returns whether another reading for a put to a PE may begin. A PE may have as many as would be left. So one that
/// takes its messages slowly leaves some to others.
bool Proxy::may_read_for(const Peer& to) const { return to.readings < most_put_readings_ - put_readings_; }

/// Several messages of a put are under way at a time: one is read while another is sent and a third is written. Small
/// ones cost too much each (bench/NOTES.md, 2026-11-29).
Size Proxy::piece_of(Size bytes) const {
  constexpr Size messages = 4;
  constexpr Size least = Size{128} << 10;
  return std::clamp(round_up(bytes / messages, Size{4096}), std::min(least, piece_), piece_);
}

/// Returns whether it was the request's last message.
bool Proxy::begin_put(Peer& to, Current& current) {
  const Request& request = current.request;
  Header header;
  header.kind = Kind::kPut;
  header.to = request.pe;
  header.bytes = std::min(piece_of(request.bytes), request.bytes - current.done);
  header.offset = request.offset + current.done;
  header.has_word = request.has_word && current.done + header.bytes == request.bytes;
  header.precedes_word = request.has_word && !header.has_word;
  if (header.has_word) {
    header.op = request.op;
    header.word = request.word;
    header.value = request.value;
  }
  to.outgoing.push_back({header, current.number});
  Outgoing& message = to.outgoing.back();
  const auto* const from = static_cast<const std::byte*>(request.local) + current.done;
  if (request.holds_data) {
    message.held = request.held;
  } else if (request.has_data_beside) {
    message.beside = View(from, static_cast<std::size_t>(header.bytes));
  } else if (header.bytes > 0) {
    message.reading = setup_.access->read(from, header.bytes);
    ++to.readings;
    ++put_readings_;
  }
  current.done += header.bytes;
  return current.done >= request.bytes;
}

bool Proxy::begin_get(Peer& to, Current& current) {
  const Request& request = current.request;
  Header header;
  header.kind = Kind::kGet;
  header.to = request.pe;
  header.bytes = std::min(piece_, request.bytes - current.done);
  header.offset = request.offset + current.done;
  ask(to, header, static_cast<std::byte*>(request.local) + current.done, current.number);
  current.done += header.bytes;
  return current.done >= request.bytes;
}

bool Proxy::begin_flush(Peer& to, const Current& current) {
  Header header;
  header.kind = Kind::kFlush;
  header.to = static_cast<int>(&to - peers_.data());
  ask(to, header, nullptr, current.number);
  return true;
}

/// Asks a PE for a request.
void Proxy::ask(Peer& of, Header header, std::byte* to, std::uint64_t request) {
  header.value = ++questions_;
  asked_[questions_] = {to, header.bytes, header.to, request};
  of.outgoing.push_back({header, request});
}

}  // namespace tandem::wire
