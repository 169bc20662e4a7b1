#include "wire/proxy/proxy.h"

#include <utility>

namespace tandem::wire {

namespace {

constexpr int kLongestWaitMs = 25;
/// The length of a rest between two looks for requests that nothing announces.
constexpr std::chrono::microseconds kNap{50};

}  // namespace

Proxy::Proxy(ProxySetup setup, std::unique_ptr<Endpoint> endpoint, Size bytes)
    : setup_(std::move(setup)),
      keys_(setup_.secret, setup_.seal, setup_.place.pes, setup_.place.me),
      endpoint_(std::move(endpoint)),
      piece_(endpoint_->most_bytes() - kHeaderBytes),
      bytes_(bytes),
      peers_(static_cast<std::size_t>(setup_.place.pes)),
      heartbeats_(setup_.heartbeat
                      ? std::optional<Heartbeats>(std::in_place, *setup_.heartbeat, setup_.place.pes, setup_.place.me)
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
      if (!has_moved) rest(current_ || outgoing_.size() > under_way_ || answers_ > 0);
    }
  } catch (...) {
    setup_.on_error(std::current_exception());
  }
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
  for (int i = 0; i < most_messages && endpoint_->poll([this](View message) { receive(message); }); ++i)
    has_moved = true;
  has_moved |= send_answers();
  has_moved |= send_requests();
  if (has_moved && setup_.search.count() > 0) moved_ = std::chrono::steady_clock::now();
  return has_moved;
}

}  // namespace tandem::wire
