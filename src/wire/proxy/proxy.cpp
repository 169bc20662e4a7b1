#include "wire/proxy/proxy.h"

#include <algorithm>
#include <utility>

namespace tandem::wire {

namespace {

constexpr int kLongestWaitMs = 25;
/// The length of a rest between two looks for requests that nothing announces.
constexpr std::chrono::microseconds kNap{50};

/// Answers have a part of the readings for themselves, and puts the rest. So neither waits for the other.
std::size_t readings_for_answers(const Access& access) { return std::max(access.most_readings() / 4, std::size_t{1}); }

}  // namespace

Proxy::Proxy(ProxySetup setup, std::unique_ptr<Endpoint> endpoint, Size bytes)
    : setup_(std::move(setup)),
      keys_(setup_.secret, setup_.seal, setup_.place.pes, setup_.place.me),
      endpoint_(std::move(endpoint)),
      piece_(endpoint_->room().most_bytes - kHeaderBytes),
      has_one_far_pe_(setup_.place.pes - setup_.place.node_size == 1),
      bytes_(bytes),
      peers_(static_cast<std::size_t>(setup_.place.pes)),
      most_put_readings_(setup_.access->most_readings() - readings_for_answers(*setup_.access)),
      most_answer_readings_(readings_for_answers(*setup_.access)),
      heartbeats_(setup_.heartbeat ? std::optional<Heartbeats>(std::in_place, *setup_.heartbeat, setup_.silence_s,
                                                               setup_.place.pes, setup_.place.me)
                                   : std::nullopt),
      mailbox_(setup_.place, [this] { endpoint_->wake(); }),
      thread_([this] { run(); }) {}

Proxy::~Proxy() {
  is_stopping_ = true;
  endpoint_->wake();
  thread_.join();
}

void Proxy::run() {
  try {
    setup_.access->start();
    if (heartbeats_) greet();
    while (!is_stopping_) {
      const bool has_moved = step();
      if (heartbeats_) beat();
      watch_connections();
      if (!has_moved) rest(is_held_up());
    }
  } catch (...) {
    setup_.on_error(std::current_exception());
  }
}

/// Returns whether a message waits for room or for its data.
bool Proxy::is_held_up() {
  return answers_ > 0 || std::any_of(busy_.begin(), busy_.end(), [this](int pe) {
           const Peer& to = peer(pe);
           return !to.requests.empty() || to.outgoing.size() > to.under_way;
         });
}

/// Waits for something to do, behind the time in which the proxy looks for it. A message that found no room may find
/// some soon, and nothing has to announce it. Nor does a kernel of a GPU announce its requests.
void Proxy::rest(bool is_held_up) {
  if (std::chrono::steady_clock::now() - moved_ < setup_.search) return std::this_thread::yield();
  if (setup_.access->kernel_requests() != nullptr) return std::this_thread::sleep_for(kNap);
  endpoint_->wait(is_held_up ? 1 : kLongestWaitMs);
}

/// Returns whether there was anything to do.
bool Proxy::step() {
  constexpr int most_messages = 64;
  bool has_moved = false;
  for (int i = 0; i < most_messages && endpoint_->poll([this](View message) { return take(message); }); ++i)
    has_moved = true;
  release_messages(!has_moved);
  has_moved |= send_answers();
  has_moved |= send_requests();
  if (has_moved && setup_.search.count() > 0) moved_ = std::chrono::steady_clock::now();
  return has_moved;
}

}  // namespace tandem::wire
