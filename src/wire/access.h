#pragma once
/// How a proxy reaches the memory of its PE: directly, or for a GPU by copies.

#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/serial.h"
#include "tandem/signal.h"
#include "wire/kernel_letters.h"

namespace tandem::wire {

/// One proxy's thread uses it; any thread may call `kernel_letters`.
class Access {
 public:
  virtual ~Access() = default;

  /// Prepares the calling thread, which is the proxy's.
  virtual void start() {}
  /// Returns the present contents of memory. They stay until the next call of a function.
  virtual View read(const std::byte* from, Size bytes) = 0;
  virtual void write(std::byte* to, View data) = 0;
  /// Writes data that may be packets, whose flags a PE polls: each aligned word of 8 bytes arrives as a whole.
  virtual void write_packets(std::byte* to, View data) {
    if (!data.empty()) write(to, data);
  }
  /// Returns the value of a word that others may change.
  virtual Epoch value_of(const Signal& word) = 0;
  /// Changes a word. Who sees the change sees all data that was written before.
  virtual void change(Signal& word, SignalOp op, Epoch value) = 0;
  /// Returns once all writes and changes are in memory.
  virtual void finish() {}
  /// Returns the letters that kernels post in memory; null: they call the mailbox.
  virtual KernelLetters* kernel_letters() { return nullptr; }
};

/// The memory of a PE on CPUs.
class HostAccess final : public Access {
 public:
  View read(const std::byte* from, Size bytes) override { return {from, static_cast<std::size_t>(bytes)}; }
  void write(std::byte* to, View data) override {
    if (!data.empty()) std::memcpy(to, data.data(), data.size());
  }
  void write_packets(std::byte* to, View data) override;
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
};

}  // namespace tandem::wire
