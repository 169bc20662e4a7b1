// The messages of other PEs, in the order of their numbers.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "tandem/error.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {

namespace {

/// Bytes of a PE's messages that may arrive before one that they have to follow. An engine that delivers all of them
/// comes nowhere near: a sender has at most 4 MB under way.
constexpr std::size_t kMostEarly = std::size_t{64} << 20;
/// Bytes that a message takes beside its own.
constexpr std::size_t kOfRecord = 128;

}  // namespace

/// Returns whether the message stays in use, since its data is written later.
bool Proxy::take(View message) {
  stays_in_use_ = false;
  receive(message);
  if (stays_in_use_) kept_.push_back({message});
  return stays_in_use_;
}

/// Releases the messages whose data is written. A mark takes its time, so one serves several messages while others
/// arrive.
void Proxy::release_messages(bool waits_for_more) {
  constexpr std::size_t most_unmarked = 8;
  const auto is_marked = [](const KeptMessage& one) { return one.writes.has_value(); };
  const auto unmarked = std::find_if_not(kept_.begin(), kept_.end(), is_marked);
  const auto count = static_cast<std::size_t>(kept_.end() - unmarked);
  if (count >= most_unmarked || (count > 0 && waits_for_more)) {
    const std::uint64_t mark = setup_.access->mark_writes();
    std::for_each(unmarked, kept_.end(), [mark](KeptMessage& one) { one.writes = mark; });
  }
  for (; !kept_.empty() && kept_.front().writes && setup_.access->are_written(*kept_.front().writes); kept_.pop_front())
    endpoint_->release(kept_.front().message);
}

void Proxy::receive(View message) {
  const auto header = keys_.open(message, plain_);
  if (!header) {
    if (!has_dropped_)
      log_line(LogLevel::kWarn,
               [&] { return fmt::format("PE {} drops messages that no PE has sent", setup_.place.me); });
    has_dropped_ = true;
    return;
  }
  Peer& from = peer(header->from);
  if (heartbeats_) heartbeats_->hear(header->from, Heartbeats::Clock::now());
  from.was_heard.store(true, std::memory_order_relaxed);
  if (header->number <= from.received) return;
  if (header->number > from.received + 1) return keep(from, *header, message);
  carry_out_next(from, *header, message);
  for (auto next = from.early.begin(); next != from.early.end() && next->first == from.received + 1;
       next = from.early.begin()) {
    const Bytes waiting = std::move(next->second);
    from.early.erase(next);
    from.early_bytes -= waiting.size() + kOfRecord;
    carry_out_next(from, *keys_.open(waiting, plain_), waiting);
  }
}

/// Keeps a message that has to follow others.
void Proxy::keep(Peer& from, const Header& header, View message) {
  if (!from.early.emplace(header.number, Bytes(message.begin(), message.end())).second) return;
  from.early_bytes += message.size() + kOfRecord;
  if (from.early_bytes > kMostEarly)
    throw RuntimeFailure(fmt::format("message {} of {} has not arrived, {} later ones of {} bytes have",
                                     from.received + 1, setup_.name_of(header.from), from.early.size(),
                                     from.early_bytes));
}

/// Carries out the message of which `plain_` is the decrypted data.
void Proxy::carry_out_next(Peer& from, const Header& header, View message) {
  const View data = message.subspan(static_cast<std::size_t>(kHeaderBytes));
  carry_out(header, keys_.seal_choice() == Seal::kAll ? View(plain_) : data);
  from.received = header.number;
}

void Proxy::carry_out(const Header& header, View data) {
  if (setup_.is_over()) return;
  switch (header.kind) {
    case Kind::kPut:
      return put(header, data);
    case Kind::kGet:
      return answer_get(header);
    case Kind::kFlush: {
      Answer flushed;
      flushed.header.kind = Kind::kFlushed;
      flushed.header.to = header.from;
      flushed.header.value = header.value;
      flushed.writes = setup_.access->mark_writes();
      return answer(std::move(flushed));
    }
    case Kind::kGot:
    case Kind::kFlushed:
      return take_answer(header, data);
    case Kind::kBeat:
      if (!heartbeats_) return;
      heartbeats_->take_look(header.from, header.value);
      if (!data.empty() && setup_.heartbeat->on_news) setup_.heartbeat->on_news(header.from, data);
      return;
  }
}

}  // namespace tandem::wire
