#pragma once
/// A PE's mailbox: the operations that its kernels post for PEs of other nodes, and how far the proxy has come.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tandem/impl/cuda/mail/mail.h"
#include "tandem/signal.h"

namespace tandem::wire {

using cuda::kMostHeld;
/// Data of a short put.
using Held = std::array<std::byte, static_cast<std::size_t>(kMostHeld)>;

/// One operation.
struct Request {
  enum class Kind : std::uint8_t { kPut, kGet, kFlush };

  Kind kind = Kind::kPut;
  SignalOp op = SignalOp::kSet;
  bool has_word = false;        ///< of a put: a signal follows the data, if there is any
  bool holds_data = false;      ///< of a put: `held` has the data, and `local` is not read
  bool precedes_later = false;  ///< of a flush: later requests to a PE wait for the answers of the other PEs
  /// Whether the source of a put is in memory of the host, where it stays until the request is answered.
  bool has_data_beside = false;
  int pe = 0;             ///< PE of the world
  void* local = nullptr;  ///< the source of a put, the destination of a get
  Size offset = 0;        ///< in the part of `pe`
  Size bytes = 0;
  Size word = 0;  ///< offset of the signal's word
  Epoch value = 0;
  Held held = {};

  /// Takes the data of a put of at most kMostHeld `bytes`, so that its source may change once this is posted.
  void hold(const void* from) {
    holds_data = true;
    std::memcpy(held.data(), from, static_cast<std::size_t>(bytes));
  }
};

/// The numbers of the last request that was posted, that is sent, and up to which all are answered.
struct Requests {
  std::uint64_t posted = 0;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
};

/// The symmetric memory of a world, as one PE addresses it, and the PE's node.
struct Place {
  std::byte* base = nullptr;
  Size stride = 0;
  int pes = 1;
  int me = 0;
  int node_size = 1;

  bool is_near(int pe) const { return pe / node_size == me / node_size; }
};

/// Where an address lies in the memory of a PE.
struct Spot {
  int pe = 0;
  Size offset = 0;
};

class Mailbox {
 public:
  /// `wake` wakes the proxy.
  Mailbox(const Place& place, std::function<void()> wake);

  bool is_near(int pe) const { return place_.is_near(pe); }
  /// Returns the place of an address in a PE of another node; nothing for every other address.
  std::optional<Spot> far_spot(const void* address) const;

  // Any thread of the PE may call these functions. Requests are carried out in their order.

  /// Returns the request's number; 0 if the mailbox is full.
  std::uint64_t try_post(const Request& request);
  /// Returns whether the sources of all puts up to this request may change. If not, `note` will ask for a ring.
  bool is_sent(std::uint64_t number) const { return has_come(sent_, number); }
  /// Returns whether all gets and flushes up to this request are answered. If not, `note` will ask for a ring.
  bool is_answered(std::uint64_t number) const { return has_come(answered_, number); }
  /// Returns whether no request was posted since the last flush that was answered.
  bool is_quiet() const;
  /// Returns how far requests have come, for reports.
  Requests requests() const {
    return {posted_.load(std::memory_order_relaxed), sent_.load(std::memory_order_relaxed),
            answered_.load(std::memory_order_relaxed)};
  }

  // The proxy calls these functions.

  /// Returns whether there is a request.
  bool has_request() const { return posted_.load(std::memory_order_acquire) != taken_; }
  /// Takes the next request, which is there. Returns its number.
  std::uint64_t take(Request& request);
  /// Notes how far the proxy has come. Returns whether a wait has asked for a ring since then.
  bool note(std::uint64_t sent, std::uint64_t answered, std::uint64_t flushed);

 private:
  static constexpr std::size_t kRequests = 4096;

  bool has_come(const std::atomic<std::uint64_t>& count, std::uint64_t number) const;

  const Place place_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<Request> ring_;
  std::uint64_t taken_ = 0;
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> flushed_{0};
  mutable std::atomic<bool> is_awaited_{false};
};

}  // namespace tandem::wire
