// The messages of other PEs, which a proxy carries out.
#include <fmt/format.h>

#include "base/log.h"
#include "base/outside_order.h"
#include "tandem/error.h"
#include "wire/proxy.h"

namespace tandem::wire {

namespace {

/// Messages that may arrive before one that they have to follow. An honest PE comes nowhere near.
constexpr std::size_t kMostEarly = std::size_t{1} << 16;

}  // namespace

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
  if (header->number > from.received + 1) {
    if (from.early.size() >= kMostEarly)
      throw RuntimeFailure(fmt::format("message {} of PE {} has not arrived, {} later ones have", from.received + 1,
                                       header->from, from.early.size()));
    from.early.emplace(header->number, Bytes(message.begin(), message.end()));
    return;
  }
  carry_out_next(from, *header, message);
  for (auto next = from.early.begin(); next != from.early.end() && next->first == from.received + 1;
       next = from.early.begin()) {
    const Bytes waiting = std::move(next->second);
    from.early.erase(next);
    carry_out_next(from, *keys_.open(waiting, plain_), waiting);
  }
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
      Answer answer;
      answer.header.kind = Kind::kFlushed;
      answer.header.to = header.from;
      answer.header.value = header.value;
      answer.writes = setup_.access->mark_writes();
      answers_.push_back(answer);
      return;
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

void Proxy::require_within(const Header& header, Size offset, Size bytes) const {
  const Size most = bytes_.load(std::memory_order_acquire);
  if (offset < 0 || bytes < 0 || bytes > most || offset > most - bytes)
    throw InvalidArgument(fmt::format("PE {} reaches for bytes {} to {} of PE {}, which has {}", header.from, offset,
                                      static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(bytes),
                                      setup_.place.me, most));
}

void Proxy::put(const Header& header, View data) {
  require_within(header, header.offset, header.bytes);
  if (header.has_word) {
    require_within(header, header.word, Size{sizeof(Signal)});
    if (header.word % Size{sizeof(Signal)} != 0)
      throw InvalidArgument(fmt::format("PE {} signals offset {} of PE {}, allowed are multiples of {}", header.from,
                                        header.word, setup_.place.me, sizeof(Signal)));
  }
  order_enters_process();
  std::byte* const to = own() + header.offset;
  if (!header.has_word && !header.precedes_word) return setup_.access->write_packets(to, data);
  if (!data.empty()) setup_.access->write(to, data);
  if (header.has_word) change_word(header);
}

void Proxy::change_word(const Header& header) {
  setup_.access->change(*reinterpret_cast<Signal*>(own() + header.word), header.op, header.value);
  setup_.ring();
}

void Proxy::answer_get(const Header& header) {
  require_within(header, header.offset, header.bytes);
  if (header.bytes > piece_)
    throw InvalidArgument(
        fmt::format("PE {} asks for {} bytes at once, allowed are {}", header.from, header.bytes, piece_));
  Answer answer;
  answer.header.kind = Kind::kGot;
  answer.header.to = header.from;
  answer.header.bytes = header.bytes;
  answer.header.value = header.value;
  answer.data = own() + header.offset;
  answers_.push_back(answer);
}

void Proxy::take_answer(const Header& header, View data) {
  const auto found = asked_.find(header.value);
  if (found == asked_.end() || found->second.pe != header.from || found->second.bytes != header.bytes)
    throw RuntimeFailure(fmt::format("PE {} answers what PE {} has not asked", header.from, setup_.place.me));
  if (!data.empty()) {
    setup_.access->write(found->second.to, data);
    setup_.access->finish();
  }
  const std::uint64_t request = found->second.request;
  asked_.erase(found);
  if (--open_.at(request).answers > 0) return;
  open_.erase(request);
  note();
}

}  // namespace tandem::wire
