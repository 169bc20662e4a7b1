// The requests of this PE, which become messages.
#include <algorithm>

#include "wire/proxy/proxy.h"

namespace tandem::wire {

/// Returns whether there is a request. Requests that kernels posted before the host's go first: a flush of the host
/// follows the work that it has waited for.
bool Proxy::take_request() {
  const bool has_request = mailbox_.has_request();
  const Counts before = taken_;
  if (KernelRequests* const kernels = setup_.access->kernel_requests()) {
    if (const auto next = kernels->take()) {
      ++taken_.kernels;
      current_ = Current{*next, ++taken_requests_, before};
      return true;
    }
  }
  if (!has_request) return false;
  current_ = Current{};
  taken_.mailbox = mailbox_.take(current_->request);
  current_->number = ++taken_requests_;
  current_->before = before;
  return true;
}

/// Makes the current request's next message. Returns false if its data finds no room.
bool Proxy::begin_message() {
  const Request& request = current_->request;
  const Request::Kind kind = request.kind;
  const bool has_to_read = kind == Request::Kind::kPut && request.bytes > 0 && !request.holds_data;
  if (has_to_read && !setup_.access->has_room()) return false;
  const bool is_last = kind == Request::Kind::kPut   ? begin_put(*current_)
                       : kind == Request::Kind::kGet ? begin_get(*current_)
                                                     : begin_flush(*current_);
  if (!is_last) return true;
  current_.reset();
  if (!outgoing_.empty()) {
    outgoing_.back().ends = taken_;
    return true;
  }
  sent_ = taken_;
  note();
  return true;
}

/// Several messages of a put are under way at a time: one is read while another is sent and a third is written. Small
/// ones cost too much each.
Size Proxy::piece_of(Size bytes) const {
  constexpr Size messages = 4;
  constexpr Size least = Size{64} << 10;
  return std::clamp(round_up(bytes / messages, Size{4096}), std::min(least, piece_), piece_);
}

/// Returns whether it was the request's last message.
bool Proxy::begin_put(Current& current) {
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
  outgoing_.push_back({header});
  if (request.holds_data) {
    outgoing_.back().held = request.held;
  } else if (header.bytes > 0) {
    const auto* const from = static_cast<const std::byte*>(request.local) + current.done;
    outgoing_.back().reading = setup_.access->read(from, header.bytes);
  }
  current.done += header.bytes;
  peer(request.pe).is_unflushed = true;
  return current.done >= request.bytes;
}

bool Proxy::begin_get(Current& current) {
  const Request& request = current.request;
  if (request.bytes == 0) return true;
  Header header;
  header.kind = Kind::kGet;
  header.to = request.pe;
  header.bytes = std::min(piece_, request.bytes - current.done);
  header.offset = request.offset + current.done;
  ask(header, static_cast<std::byte*>(request.local) + current.done);
  current.done += header.bytes;
  return current.done >= request.bytes;
}

bool Proxy::begin_flush(Current& current) {
  while (current.next_peer < setup_.place.pes && !peer(current.next_peer).is_unflushed) ++current.next_peer;
  if (current.next_peer == setup_.place.pes) {
    flushes_.emplace(current.number, taken_);
    return true;
  }
  Header header;
  header.kind = Kind::kFlush;
  header.to = current.next_peer;
  peer(current.next_peer).is_unflushed = false;
  ask(header, nullptr);
  return false;
}

/// Asks a PE for the current request.
void Proxy::ask(Header header, std::byte* to) {
  header.value = ++questions_;
  asked_[questions_] = {to, header.bytes, header.to, current_->number};
  ++open_.try_emplace(current_->number, Open{0, current_->before}).first->second.answers;
  outgoing_.push_back({header});
}

}  // namespace tandem::wire
