// Messages that nobody asked for, which show that this PE lives.
#include "wire/proxy/proxy.h"

namespace tandem::wire {

/// Sends a first message to each PE of other nodes, so that all learn whether they reach each other.
void Proxy::greet() {
  for (int pe = 0; pe < setup_.place.pes; ++pe) {
    if (setup_.place.is_near(pe)) continue;
    Answer greeting;
    greeting.header.kind = Kind::kBeat;
    greeting.header.to = pe;
    answer(std::move(greeting));
  }
}

void Proxy::beat() {
  const auto now = Heartbeats::Clock::now();
  if (setup_.is_over()) return;
  if (const auto look = heartbeats_->due(now)) {
    for (int pe = 0; pe < setup_.place.pes; ++pe) {
      if (setup_.place.is_near(pe)) continue;
      Header header;
      header.kind = Kind::kBeat;
      header.to = pe;
      header.value = *look;
      if (heartbeats_->is_rail_peer(pe)) send(header, {});  // a later one will do where there is no room
      if (setup_.heartbeat->news) tell_news(pe, *look);
    }
  }
  heartbeats_->watch(now);
}

void Proxy::tell_news(int pe, std::uint64_t look) {
  Answer news;
  news.own = setup_.heartbeat->news(pe, static_cast<std::size_t>(piece_));
  if (news.own.empty()) return;
  news.header.kind = Kind::kBeat;
  news.header.to = pe;
  news.header.bytes = static_cast<Size>(news.own.size());
  news.header.value = look;
  answer(std::move(news));
}

}  // namespace tandem::wire
