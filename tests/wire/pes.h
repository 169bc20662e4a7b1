#pragma once
/// PEs of one node each, with a proxy and some memory, and nothing else of a world.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "wire/loop.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire::testing {

/// Returns a key that is the same for the same byte.
inline bootstrap::Key key_of(int byte) {
  bootstrap::Key key;
  key.fill(static_cast<std::byte>(byte));
  return key;
}

/// Blocks until `condition` holds. A proxy that never gets there is an error instead of a hang. The environment
/// shortens the wait for proxies that are known to be broken.
template <class Condition>
void await(const Condition& condition) {
  const char* const limit = std::getenv("TANDEM_TEST_AWAIT_S");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit == nullptr ? 60 : std::stoi(limit));
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("what a test waits for never happens");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// An endpoint that passes all calls on.
class Wrapped : public Endpoint {
 public:
  explicit Wrapped(std::unique_ptr<Endpoint> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  Bytes address() const override { return inner_->address(); }
  void connect(const std::vector<Bytes>& addresses) override { inner_->connect(addresses); }
  Room room() const override { return inner_->room(); }
  bool send(int pe, View header, View data, const OnSent& sent) override {
    return inner_->send(pe, header, data, sent);
  }
  bool poll(const Take& take) override { return inner_->poll(take); }
  void release(View message) override { inner_->release(message); }
  void wait(int ms) override { inner_->wait(ms); }
  void wake() override { inner_->wake(); }

 protected:
  std::unique_ptr<Endpoint> inner_;
};

/// An endpoint that finds no room for messages to one PE.
class Without final : public Wrapped {
 public:
  Without(std::unique_ptr<Endpoint> inner, const std::atomic<int>& pe) : Wrapped(std::move(inner)), pe_(pe) {}

  bool send(int pe, View header, View data, const OnSent& sent) override {
    return pe != pe_ && inner_->send(pe, header, data, sent);
  }
  void wait(int ms) override { Wrapped::wait(std::min(ms, 1)); }

 private:
  const std::atomic<int>& pe_;
};

using Wrap = std::function<std::unique_ptr<Endpoint>(int pe, std::unique_ptr<Endpoint>)>;

/// Returns a wrap of PE 0's endpoint, which reaches all PEs but one.
inline Wrap pe_0_without(const std::atomic<int>& without) {
  return [&without](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
    if (pe == 0) return std::make_unique<Without>(std::move(inner), without);
    return inner;
  };
}

struct PesSetup {
  Disorder disorder = {};
  Seal seal = Seal::kHeaders;
  /// Is called on the proxy's thread of the PE whose memory may have changed.
  std::function<void(int pe)> on_change = {};
  /// Replaces the endpoint of a PE.
  Wrap wrap = {};
  /// Replaces the access of a PE's proxy to its memory.
  std::function<std::shared_ptr<Access>(int pe)> access = {};
  std::function<Heartbeat(int pe)> heartbeat = {};
  double silence_s = 3;
  std::function<bool(int pe)> is_over = {};  ///< whether a PE takes the world for over, without an error
  int host_size = 1;                         ///< PEs of a host, which share a node
  std::chrono::microseconds search{0};
};

class Pes {
 public:
  static constexpr Size kBytes = Size{1} << 19;

  explicit Pes(int pes, const PesSetup& all = {})
      : memory_(static_cast<std::size_t>(pes * kBytes + kGuardBytes)),
        on_change_(all.on_change),
        pulses_(static_cast<std::size_t>(pes * pes)) {
    const Loop loop(pes, all.disorder);
    for (int pe = 0; pe < pes; ++pe) {
      ProxySetup setup;
      setup.place = {memory_.data(), kBytes, pes, pe, all.host_size};
      setup.secret = key_of(7);
      setup.seal = all.seal;
      setup.ring = [this, pe] {
        if (on_change_) on_change_(pe);
      };
      setup.is_over = [this, pe, over = all.is_over] { return is_over_.load() || (over && over(pe)); };
      setup.on_error = [this, pe](const std::exception_ptr& error) { note(pe, error); };
      setup.search = all.search;
      setup.silence_s = all.silence_s;
      setup.access = all.access ? all.access(pe) : std::make_shared<HostAccess>(setup.place);
      if (all.heartbeat) {
        setup.heartbeat = all.heartbeat(pe);
        setup.heartbeat->host_size = all.host_size;
        setup.heartbeat->pulses = pulses_.data() + pe / all.host_size * pes;
      }
      auto endpoint = loop.endpoint(pe);
      if (all.wrap) endpoint = all.wrap(pe, std::move(endpoint));
      proxies_.push_back(std::make_unique<Proxy>(std::move(setup), std::move(endpoint), kBytes));
    }
  }
  ~Pes() { proxies_.clear(); }
  Pes(const Pes&) = delete;
  Pes& operator=(const Pes&) = delete;

  Proxy& proxy(int pe) { return *proxies_[static_cast<std::size_t>(pe)]; }
  std::uint64_t post(int pe, const Request& request) { return proxy(pe).mailbox().try_post(request); }
  /// Blocks until all requests of a PE so far are carried out, or the world is over.
  void settle(int pe) {
    const std::uint64_t number = post(pe, {.kind = Request::Kind::kFlush});
    await([&] { return is_over_ || proxy(pe).mailbox().is_answered(number); });
  }
  std::byte* memory(int pe) { return memory_.data() + pe * kBytes; }
  std::uint64_t word(int pe, Size offset) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory(pe) + offset)).load(std::memory_order_acquire);
  }
  /// Returns the error that ended the world; empty if there is none.
  std::string error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  static constexpr Size kGuardBytes = 4096;  // behind the last PE's part, for writes that are not refused

  void note(int pe, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& why) {
      if (error_.empty()) error_ = fmt::format("PE {}: {}", pe, why.what());
    }
    is_over_ = true;
  }

  std::vector<std::byte> memory_;
  std::function<void(int)> on_change_;
  std::vector<Pulse> pulses_;  // of all PEs, by host
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::string error_;
  std::vector<std::unique_ptr<Proxy>> proxies_;
};

/// The endpoint of PE 0 of six, which hears nothing for a time. It has room for one answer between two polls, or for
/// none, and notes to whom it sends them.
class AskedOne final : public Wrapped {
 public:
  struct State {
    std::atomic<bool> is_deaf{true}, is_mute{false};
    std::mutex mutex;
    std::vector<int> answered;  ///< PEs in the order of their answers

    /// Expects that so many PEs got their answers in turns.
    void expect_turns(std::size_t pes, std::size_t answers_of_each) {
      ASSERT_EQ(answered.size(), pes * answers_of_each);
      for (std::size_t i = pes; i < answered.size(); ++i) EXPECT_EQ(answered[i], answered[i - pes]) << i;
    }
  };
  AskedOne(std::unique_ptr<Endpoint> inner, State& state) : Wrapped(std::move(inner)), state_(state) {}

  bool send(int pe, View header, View data, const OnSent& sent) override {
    Bytes plain, message(header.begin(), header.end());
    message.insert(message.end(), data.begin(), data.end());
    const auto fields = Keys(key_of(7), Seal::kHeaders, 6, pe).open(message, plain);
    const bool is_answer = fields && fields->kind == Kind::kGot;
    if (is_answer && (state_.is_mute || !has_room_)) return false;
    if (is_answer) {
      has_room_ = false;
      const std::lock_guard lock(state_.mutex);
      state_.answered.push_back(pe);
    }
    return Wrapped::send(pe, header, data, sent);
  }
  bool poll(const Take& take) override {
    has_room_ = true;
    return !state_.is_deaf && Wrapped::poll(take);
  }
  void wait(int ms) override { Wrapped::wait(std::min(ms, 1)); }

 private:
  State& state_;
  bool has_room_ = true;
};

inline PesSetup asked(AskedOne::State& state) {
  return {.wrap = [&state](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
    if (pe == 0) return std::make_unique<AskedOne>(std::move(inner), state);
    return inner;
  }};
}

}  // namespace tandem::wire::testing
