#pragma once
/// How a proxy reaches the memory of its PE: directly, or for a GPU by copies.

#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/serial.h"
#include "tandem/signal.h"
#include "wire/kernel_requests.h"

namespace tandem::wire {

/// Contents of memory on their way to a message.
struct Reading {
  View data;
  std::uint64_t number = 0;  ///< of the reading, for `is_read`
  bool stays = false;        ///< the memory is there as long as the Access, and its contents until `release`
};

/// One proxy's thread uses it; any thread may call `kernel_requests`.
class Access {
 public:
  virtual ~Access() = default;

  /// Prepares the calling thread, which is the proxy's.
  virtual void start() {}
  /// Returns how many readings there may be at a time: at least 2.
  virtual std::size_t most_readings() const { return std::numeric_limits<std::size_t>::max(); }
  /// Begins to read memory, behind all readings so far. The data stays until `release`.
  virtual Reading read(const std::byte* from, Size bytes) = 0;
  /// Returns whether the data of a reading is there. Readings end in their order.
  virtual bool is_read(const Reading&) { return true; }
  virtual void release(const Reading&) {}
  /// Writes data. Returns whether it reads the data later: it has to stay then until all writes so far are in memory.
  /// That may be so only of data in the memory of an endpoint's room.
  virtual bool write(std::byte* to, View data) = 0;
  /// Writes data that may be packets, whose flags a PE polls: each aligned word of 8 bytes arrives as a whole.
  virtual bool write_packets(std::byte* to, View data) { return !data.empty() && write(to, data); }
  /// Returns the value of a word that others may change.
  virtual Epoch value_of(const Signal& word) = 0;
  /// Changes a word. Who sees the change sees all data that was written before.
  virtual void change(Signal& word, SignalOp op, Epoch value) = 0;
  /// Returns a number for `are_written`, which stands for all writes and changes so far.
  virtual std::uint64_t mark_writes() { return 0; }
  /// Returns whether the writes and changes up to a mark are in memory.
  virtual bool are_written(std::uint64_t) { return true; }
  /// Returns once all writes and changes are in memory.
  virtual void finish() {}
  /// Returns the requests that kernels post in memory; null: they call the mailbox.
  virtual KernelRequests* kernel_requests() { return nullptr; }
};

/// The memory of a PE on CPUs.
class HostAccess : public Access {
 public:
  /// The symmetric memory of `place` stays as long as the world. Memory of others may be unmapped once the world is
  /// over.
  explicit HostAccess(const Place& place = {}) : place_(place) {}
  Reading read(const std::byte* from, Size bytes) override {
    const auto from_base = reinterpret_cast<std::uintptr_t>(from) - reinterpret_cast<std::uintptr_t>(place_.base);
    const bool stays = from_base < static_cast<std::uintptr_t>(place_.pes * place_.stride);
    return {{from, static_cast<std::size_t>(bytes)}, 0, stays};
  }
  bool write(std::byte* to, View data) override {
    if (!data.empty()) std::memcpy(to, data.data(), data.size());
    return false;
  }
  bool write_packets(std::byte* to, View data) override;
  Epoch value_of(const Signal& word) override {
    return std::atomic_ref(const_cast<Signal&>(word).value).load(std::memory_order_acquire);
  }
  void change(Signal& word, SignalOp op, Epoch value) override {
    const std::atomic_ref at(word.value);
    if (op == SignalOp::kSet)
      at.store(value, std::memory_order_release);
    else
      at.fetch_add(value, std::memory_order_release);
  }

 private:
  const Place place_;
};

}  // namespace tandem::wire
