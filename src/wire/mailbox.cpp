#include "wire/mailbox.h"

namespace tandem::wire {

Mailbox::Mailbox(const Place& place, std::function<void()> wake)
    : place_(place), wake_(std::move(wake)), ring_(kRequests) {}

std::optional<Spot> Mailbox::far_spot(const void* address) const {
  const auto from_base = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(place_.base);
  const auto stride = static_cast<std::uintptr_t>(place_.stride);
  if (from_base / stride >= static_cast<std::uintptr_t>(place_.pes)) return std::nullopt;
  const int pe = static_cast<int>(from_base / stride);
  if (place_.is_near(pe)) return std::nullopt;
  return Spot{pe, static_cast<Size>(from_base % stride)};
}

std::uint64_t Mailbox::try_post(const Request& request) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = posted_.load(std::memory_order_relaxed) + 1;
    if (number - taken_ > kRequests) {
      is_awaited_.store(true, std::memory_order_relaxed);
      return 0;
    }
    ring_[number % kRequests] = request;
    posted_.store(number, std::memory_order_release);
  }
  wake_();
  return number;
}

bool Mailbox::is_quiet() const {
  return posted_.load(std::memory_order_acquire) == flushed_.load(std::memory_order_acquire);
}

std::uint64_t Mailbox::take(Request& request) {
  const std::lock_guard lock(mutex_);
  ++taken_;
  request = ring_[taken_ % kRequests];
  return taken_;
}

/// A waiter sets the flag and then reads the count; the proxy writes the count and then reads the flag. So one of them
/// sees what the other wrote.
bool Mailbox::has_come(const std::atomic<std::uint64_t>& count, std::uint64_t number) const {
  if (count.load(std::memory_order_acquire) >= number) return true;
  is_awaited_.store(true, std::memory_order_seq_cst);
  return count.load(std::memory_order_seq_cst) >= number;
}

bool Mailbox::note(std::uint64_t sent, std::uint64_t answered, std::uint64_t flushed) {
  flushed_.store(flushed, std::memory_order_release);
  sent_.store(sent, std::memory_order_seq_cst);
  answered_.store(answered, std::memory_order_seq_cst);
  return is_awaited_.load(std::memory_order_seq_cst) && is_awaited_.exchange(false, std::memory_order_seq_cst);
}

}  // namespace tandem::wire
