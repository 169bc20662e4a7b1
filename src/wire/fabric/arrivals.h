#pragma once
/// The other PEs' connections to this one, and the messages that come along them.

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "bootstrap/protocol/mac.h"
#include "wire/fabric/lane.h"
#include "wire/fabric/sleep.h"

namespace tandem::wire {

/// Items that one thread puts and another one takes, in their order.
template <class Item, std::size_t kMost>
class Passage {
 public:
  /// There is room for kMost items.
  void put(const Item& item) {
    const std::size_t number = put_.load(std::memory_order_relaxed);
    items_[number % kMost] = item;
    put_.store(number + 1, std::memory_order_release);
  }
  std::optional<Item> take() {
    const std::size_t number = taken_.load(std::memory_order_relaxed);
    if (number == put_.load(std::memory_order_acquire)) return std::nullopt;
    const Item item = items_[number % kMost];
    taken_.store(number + 1, std::memory_order_release);
    return item;
  }

 private:
  std::array<Item, kMost> items_ = {};
  alignas(64) std::atomic<std::size_t> put_{0};
  alignas(64) std::atomic<std::size_t> taken_{0};
};

/// A PE listens until all others have connected. Who connects has to know the pass, which is a part of the address.
///
/// Reading a socket copies the data once, which takes as long as writing one. So where proxies look for work, a thread
/// receives: the proxy writes its messages meanwhile. Only that thread uses libfabric's objects of this class, from
/// `start` on.
class Arrivals {
 public:
  Arrivals(const fi_info& info, fid_fabric* fabric);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  const Bytes& address() const { return address_; }
  static std::size_t pass_bytes() { return sizeof(bootstrap::Key); }
  const Lane& lane() const { return lane_; }

  /// Expects so many callers. With a `search` above 0 a thread receives from now on. It calls `wake` when a message is
  /// there, and looks for more messages for so long before it sleeps.
  void start(std::size_t callers, std::chrono::microseconds search, const std::function<void()>& wake);
  /// As Endpoint::poll.
  bool poll(const Take& take);
  void release(View message);
  /// Returns a descriptor that is readable once there is something to poll, -1 if there is now; nothing if a thread
  /// receives.
  std::optional<int> sleeping_descriptor() const;
  /// Whether nothing announces a PE that connects.
  bool has_to_look() const { return !thread_.joinable() && listener_ != nullptr; }

 private:
  static constexpr std::size_t kReceives = 32;

  void run(std::chrono::microseconds search);
  bool receive();
  void read_events();
  void admit(fi_info* caller, View pass);

  const bootstrap::Key pass_;
  Lane lane_;
  Owned<fid_eq> events_;
  Owned<fid_ep> receiver_;
  Owned<fid_pep> listener_;  // null: all connections are there
  Bytes address_;
  std::vector<Owned<fid_ep>> callers_;
  std::size_t missing_ = 0;

  // For the thread that receives:
  std::function<void()> wake_;
  Sleep sleep_;
  Passage<View, kReceives> arrived_, released_;
  std::exception_ptr error_;  // why the thread has ended
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

/// Returns an end of a connection. Its events and completions go to the given objects.
Owned<fid_ep> make_end(const fi_info& description, const Lane& lane, fid_eq* events, fid_ep* receiver);
/// Returns a queue of events of connections.
Owned<fid_eq> make_events(fid_fabric* fabric);
/// Returns an object by which the ends of connections receive.
Owned<fid_ep> make_receiver(const fi_info& info, const Lane& lane);

}  // namespace tandem::wire
