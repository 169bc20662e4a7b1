#pragma once
/// PEs of one node each, with a proxy and some memory, and nothing else of a world.

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "wire/loop.h"
#include "wire/proxy.h"

namespace tandem::wire::testing {

/// Returns a key that is the same for the same byte.
inline bootstrap::Key key_of(int byte) {
  bootstrap::Key key;
  key.fill(static_cast<std::byte>(byte));
  return key;
}

class Pes {
 public:
  static constexpr Size kBytes = Size{1} << 19;

  using Wrap = std::function<std::unique_ptr<Endpoint>(int pe, std::unique_ptr<Endpoint>)>;

  /// `on_change` is called on the proxy's thread of the PE whose memory may have changed.
  explicit Pes(int pes, const Disorder& disorder = {}, Seal seal = Seal::kHeaders,
               std::function<void(int pe)> on_change = {}, const Wrap& wrap = {})
      : memory_(static_cast<std::size_t>(pes * kBytes)), on_change_(std::move(on_change)) {
    const Loop loop(pes, disorder);
    for (int pe = 0; pe < pes; ++pe) {
      ProxySetup setup;
      setup.place = {memory_.data(), kBytes, pes, pe, 1};
      setup.secret = key_of(7);
      setup.seal = seal;
      setup.ring = [this, pe] {
        if (on_change_) on_change_(pe);
      };
      setup.is_over = [this] { return is_over_.load(); };
      setup.on_error = [this, pe](const std::exception_ptr& error) { note(pe, error); };
      auto endpoint = loop.endpoint(pe);
      if (wrap) endpoint = wrap(pe, std::move(endpoint));
      proxies_.push_back(std::make_unique<Proxy>(std::move(setup), std::move(endpoint), kBytes));
    }
  }
  ~Pes() { proxies_.clear(); }
  Pes(const Pes&) = delete;
  Pes& operator=(const Pes&) = delete;

  Proxy& proxy(int pe) { return *proxies_[static_cast<std::size_t>(pe)]; }
  std::uint64_t post(int pe, const Letter& letter) { return proxy(pe).mailbox().try_post(letter); }
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
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::string error_;
  std::vector<std::unique_ptr<Proxy>> proxies_;
};

}  // namespace tandem::wire::testing
