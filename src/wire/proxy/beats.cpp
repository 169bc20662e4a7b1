// Messages that nobody asked for, which show that this PE lives, and connections that carry none.
#include <fmt/format.h>

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
      if (heartbeats_->is_rail_peer(pe)) send(header, {});
      if (!is_over && setup_.heartbeat->news) tell_news(pe, *look);
    }
  }
  if (!is_over) heartbeats_->watch(now);
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

/// Reports connections that broke so long ago that only they can be the reason. A PE that has gone is reported before:
/// by the rendezvous, or by missing heartbeats.
void Proxy::watch_connections() {
  for (Break& one : endpoint_->breaks()) broken_.push_back({std::move(one), std::chrono::steady_clock::now()});
  if (broken_.empty() || setup_.is_over()) return;
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> silence(setup_.silence_s);
  std::erase_if(broken_, [&](const Broken& one) {
    if (now - one.since <= silence) return false;
    setup_.on_error(std::make_exception_ptr(
        RuntimeFailure(fmt::format("the connection to {} broke {} s ago: {} (TANDEM_HEARTBEAT_S)",
                                   setup_.name_of(one.it.pe), setup_.silence_s, one.it.why))));
    return true;
  });
}

}  // namespace tandem::wire
