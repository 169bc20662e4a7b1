// One-sided calls between CPUs: the rank that puts copies into the memory of its peer.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "bindings/nccl/communicator.h"

namespace tandem::nccl {

/// Returns the word on `rank` that counts the signals of `sender`.
Epoch* Communicator::signal_on(int rank, int sender, std::size_t signal) {
  if (ranks_ == 1) return &own_signals_[signal];
  const auto number = static_cast<Size>(static_cast<std::size_t>(sender) * kSignals + signal);
  return reinterpret_cast<Epoch*>((signals_ + number).on(rank));
}

void Communicator::put_signal(const void* handle, std::size_t offset, const void* data, Size bytes, int peer,
                              std::size_t signal) {
  if (handle != nullptr && bytes > 0) {
    const auto count = static_cast<std::size_t>(bytes);
    void* const to = on_rank(handle, offset, peer);
    on_rank(handle, offset + count - 1, peer);  // checks the end
    std::memcpy(to, data, count);
  }
  __atomic_fetch_add(signal_on(peer, rank_, signal), Epoch{1}, __ATOMIC_RELEASE);
}

void Communicator::wait_signal(int peer, std::size_t signal, std::uint64_t count) {
  constexpr std::chrono::microseconds pause(20);
  const Epoch* const word = signal_on(rank_, peer, signal);
  Epoch& consumed = consumed_signals_[static_cast<std::size_t>(peer) * kSignals + signal];
  const auto arrived = [&] { return static_cast<Epoch>(__atomic_load_n(word, __ATOMIC_ACQUIRE) - consumed); };
  {
    const std::lock_guard lock(mutex_);
    slow_.waits = fmt::format("rank {} has sent {} of {} signals {}", peer, arrived(), count, signal);
  }
  while (arrived() < count) {
    if (ranks_ == 1) throw Failed(ncclInvalidUsage, "signal: one rank waits for a signal that it has not sent");
    world_->process().check();
    std::this_thread::sleep_for(pause);
  }
  consumed += static_cast<Epoch>(count);
}

}  // namespace tandem::nccl
