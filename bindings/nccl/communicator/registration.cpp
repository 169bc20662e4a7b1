// Memory of a communicator: registered ranges, windows that all ranks map, and what it takes itself.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "bindings/nccl/communicator.h"
#include "world/device/devices.h"

namespace tandem::nccl {

void* Communicator::add_range(const Range& range) {
  auto handle = std::make_unique<char>();
  void* const address = handle.get();
  const std::lock_guard lock(mutex_);
  ranges_.emplace(address, std::pair(std::move(handle), range));
  return address;
}

std::optional<Communicator::Range> Communicator::range(const void* handle, bool is_window) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(handle);
  if (found == ranges_.end() || found->second.second.is_window != is_window) return std::nullopt;
  return found->second.second;
}

std::optional<Communicator::Range> Communicator::remove_range(const void* handle, bool is_window) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(handle);
  if (found == ranges_.end() || found->second.second.is_window != is_window) return std::nullopt;
  const Range range = found->second.second;
  ranges_.erase(found);
  return range;
}

/// Memory of another kind stays as it is: calls copy it.
void Communicator::share(const void* handle) {
  const std::lock_guard lock(running_);
  const auto window = range(handle, true);
  if (!window || ranks_ == 1) return;
  hide_freed();
  try {
    world().register_memory(window->memory, static_cast<Size>(window->bytes));
  } catch (const Unsupported& error) {
    return log_line(LogLevel::kInfo, [&] { return fmt::format("window is copied: {}", error.what()); });
  } catch (const InvalidArgument& error) {
    return log_line(LogLevel::kInfo, [&] { return fmt::format("window is copied: {}", error.what()); });
  }
  const std::lock_guard state_lock(mutex_);
  ranges_.at(handle).second.is_shared = true;
}

void Communicator::unshare(const Range& range) {
  const std::lock_guard lock(running_);
  if (!range.is_shared) return;
  {
    const std::lock_guard state_lock(mutex_);
    std::erase(freed_, range.memory);
  }
  world().unregister_memory(range.memory);
}

void Communicator::forget(const void* memory) {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, entry] : ranges_)
    if (entry.second.memory == memory && entry.second.is_shared) freed_.push_back(memory);
}

/// The addresses may have other memory by now.
void Communicator::hide_freed() {
  std::vector<const void*> freed;
  {
    const std::lock_guard lock(mutex_);
    freed = freed_;
  }
  for (const void* const memory : freed) world_->hide(memory);
}

void* Communicator::on_rank(const void* handle, std::size_t offset, int rank) {
  const auto window = range(handle, true);
  if (!window)
    throw InvalidArgument(fmt::format("window: {} given, allowed is a window of a communicator", fmt::ptr(handle)));
  if (offset >= window->bytes)
    throw InvalidArgument(fmt::format("offset: {} given, allowed are 0 to {}", offset, window->bytes - 1));
  if (rank < 0 || rank >= ranks_)
    throw InvalidArgument(fmt::format("peer: {} given, allowed are 0 to {}", rank, ranks_ - 1));
  auto* const own = static_cast<std::byte*>(window->memory) + offset;
  if (ranks_ == 1) return own;
  if (!window->is_shared)
    throw Failed(ncclInvalidUsage, "window: its memory is not shared, allowed is memory of ncclMemAlloc");
  return rank == rank_ ? own : world().on_pe(own, 1, rank, "window");
}

WorldProcess::MemoryUse Communicator::memory() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kNew)
    throw InvalidArgument("comm: the communicator is not ready; wait until ncclCommGetAsyncError gives ncclSuccess");
  return world_ == nullptr ? WorldProcess::MemoryUse{} : world_->process().memory_use();
}

void Communicator::suspend() {
  const std::lock_guard lock(running_);
  check_usable();
  if (world_ != nullptr) as_remote_if_lost([&] { world_->process().suspend(); });
  const std::lock_guard state_lock(mutex_);
  if (phase_ == Phase::kReady) phase_ = Phase::kSuspended;
}

void Communicator::resume() {
  const std::lock_guard lock(running_);
  {
    const std::lock_guard state_lock(mutex_);
    if (phase_ == Phase::kReady) throw Failed(ncclInvalidUsage, "comm: the communicator is not suspended");
    if (phase_ != Phase::kSuspended) check_phase();
  }
  if (world_ != nullptr) as_remote_if_lost([&] { world_->process().resume(); });
  const std::lock_guard state_lock(mutex_);
  if (phase_ == Phase::kSuspended) phase_ = Phase::kReady;
}

}  // namespace tandem::nccl
