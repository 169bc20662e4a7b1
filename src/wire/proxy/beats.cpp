// Messages that nobody asked for, which show that this PE lives.
#include "tandem/error.h"
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

/// A PE that takes the world for over is still heard. Else the others would take it for stopped before they know why.
void Proxy::beat() {
  const auto now = Heartbeats::Clock::now();
  const bool is_over = setup_.is_over();
  if (const auto look = heartbeats_->due(now)) {
    for (int pe = 0; pe < setup_.place.pes; ++pe) {
      if (setup_.place.is_near(pe)) continue;
      Header header;
      header.kind = Kind::kBeat;
      header.to = pe;
      header.value = *look;
      if (heartbeats_->is_rail_peer(pe)) send_beat(header, is_over);
      if (!is_over && setup_.heartbeat->news) tell_news(pe, *look);
    }
  }
  if (!is_over) heartbeats_->watch(now);
}

/// Sends a beat if there is room; else a later one will do. A broken connection is no error of a world that is over.
void Proxy::send_beat(const Header& header, bool is_over) {
  try {
    send(header, {});
  } catch (const RuntimeFailure&) {
    if (!is_over) throw;
  }
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
