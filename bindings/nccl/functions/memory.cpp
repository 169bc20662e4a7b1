// Memory of programs: allocations, registrations and windows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "bindings/nccl/fallback.h"
#include "bindings/nccl/functions/exports.h"
#include "bindings/nccl/group.h"
#include "bindings/nccl/handles.h"
#include "world/device/devices.h"

namespace {

using tandem::InvalidArgument;
using tandem::Size;
using tandem::nccl::communicator_of;
using tandem::nccl::given;
using tandem::nccl::guarded;
using tandem::world::Chunk;
using tandem::world::Devices;
using tandem::world::Handles;

/// The allocations of this process. Never destroyed: at the process's end other threads may still be in a call.
struct Allocations {
  std::mutex mutex;
  std::map<void*, Chunk> all;
};

Allocations& allocations() {
  static auto& all = *new Allocations;
  return all;
}

/// Allocates memory whose handle other processes can import, so that it can be registered.
void* allocate(std::size_t given_bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 46;
  if (given_bytes > kMost)
    throw InvalidArgument(
        fmt::format("size: {} given, allowed is at most {}, more than any memory holds", given_bytes, kMost));
  Devices& devices = tandem::world::devices_of(std::nullopt);
  devices.require_any();
  const int device = std::max(devices.current(), 0);
  devices.start(device);
  tandem::world::DeviceMemory& memory = devices.memory();
  Chunk chunk;
  chunk.bytes = tandem::round_up(static_cast<Size>(given_bytes), memory.granularity(device, Handles::kDescriptors));
  chunk.handle = memory.create(device, Handles::kDescriptors, chunk.bytes);
  std::byte* at = nullptr;
  bool is_mapped = false;
  try {
    at = memory.reserve(chunk.bytes);
    memory.map(at, chunk);
    is_mapped = true;
    memory.allow(at, chunk.bytes, {device});
    memory.commit(at, chunk.bytes);
    const std::lock_guard lock(allocations().mutex);
    allocations().all.emplace(at, chunk);
  } catch (...) {
    if (is_mapped) memory.unmap(at, chunk.bytes);
    if (at != nullptr) memory.give_back(at, chunk.bytes);
    memory.release(chunk.handle);
    throw;
  }
  return at;
}

void free_memory(void* at) {
  Chunk chunk;
  {
    const std::lock_guard lock(allocations().mutex);
    const auto found = allocations().all.find(at);
    if (found == allocations().all.end())
      throw InvalidArgument(fmt::format("ptr: {} given, allowed is an address from ncclMemAlloc", fmt::ptr(at)));
    chunk = found->second;
    allocations().all.erase(found);
  }
  for (const auto& communicator : tandem::nccl::all_communicators()) communicator->forget(at);
  tandem::world::DeviceMemory& memory = tandem::world::devices_of(std::nullopt).memory();
  auto* const begin = static_cast<std::byte*>(at);
  memory.unmap(begin, chunk.bytes);
  memory.give_back(begin, chunk.bytes);
  memory.release(chunk.handle);
}

/// Registered memory is noted, and calls copy it as any other.
void* add_range(ncclComm_t comm, void* memory, std::size_t bytes, bool is_window) {
  given(static_cast<char*>(memory), "buff");
  if (bytes == 0) throw InvalidArgument("size: 0 given, allowed is at least 1");
  const auto communicator = communicator_of(comm);
  communicator->check_usable();
  return communicator->add_range({memory, bytes, is_window});
}

ncclResult_t remove_range(ncclComm_t comm, const void* handle, bool is_window) {
  const auto communicator = communicator_of(comm);
  // A shared window is unmapped by all ranks. Its handle has to stay where that is impossible.
  if (const auto its = communicator->range(handle, is_window); its && its->is_shared) communicator->check_usable();
  const auto range = communicator->remove_range(handle, is_window);
  if (!range)
    throw InvalidArgument(fmt::format("{}: {} given, allowed is one of this communicator that was not deregistered",
                                      is_window ? "win" : "handle", fmt::ptr(handle)));
  if (!range->is_shared) return ncclSuccess;
  return tandem::nccl::add_change(communicator, communicator, [communicator, range] { communicator->unshare(*range); });
}

}  // namespace

TANDEM_NCCL_EXPORT(MemAlloc);
ncclResult_t pncclMemAlloc(void** memory, std::size_t bytes) {
  TANDEM_NCCL_FORWARD_OWN(MemAlloc, ncclInvalidUsage, memory, bytes);
  return guarded([&] {
    given(memory, "ptr") = nullptr;
    if (bytes > 0) *memory = allocate(bytes);
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(MemFree);
ncclResult_t pncclMemFree(void* memory) {
  TANDEM_NCCL_FORWARD_OWN(MemFree, ncclInvalidUsage, memory);
  return guarded([&] {
    if (memory != nullptr) free_memory(memory);
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommRegister);
ncclResult_t pncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes, void** handle) {
  TANDEM_NCCL_FORWARD(CommRegister, comm, ncclInvalidUsage, *real, memory, bytes, handle);
  return guarded([&] {
    given(handle, "handle") = nullptr;
    *handle = add_range(comm, memory, bytes, false);
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(CommDeregister);
ncclResult_t pncclCommDeregister(ncclComm_t comm, void* handle) {
  TANDEM_NCCL_FORWARD(CommDeregister, comm, ncclInvalidUsage, *real, handle);
  return guarded([&] { return remove_range(comm, handle, false); });
}

TANDEM_NCCL_EXPORT(CommWindowRegister);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* memory, std::size_t bytes, ncclWindow_t* window,
                                     int flags) {
  TANDEM_NCCL_FORWARD(CommWindowRegister, comm, ncclInvalidUsage, *real, memory, bytes, window, flags);
  return guarded([&] {
    given(window, "win") = nullptr;
    if (flags < 0 || flags > kMostWindowFlags)
      throw InvalidArgument(fmt::format("winFlags: {} given, allowed are 0 to {}", flags, kMostWindowFlags));
    void* const handle = add_range(comm, memory, bytes, true);
    *window = static_cast<ncclWindow_t>(handle);
    // Without the flag the ranks' buffers may lie at different offsets.
    if ((flags & kWindowSymmetric) == 0) return ncclSuccess;
    const auto communicator = communicator_of(comm);
    return tandem::nccl::add_change(communicator, communicator,
                                    [communicator, handle] { communicator->share(handle); });
  });
}

TANDEM_NCCL_EXPORT(CommWindowDeregister);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  TANDEM_NCCL_FORWARD(CommWindowDeregister, comm, ncclInvalidUsage, *real, window);
  return guarded([&] { return remove_range(comm, window, true); });
}

TANDEM_NCCL_EXPORT(WinGetUserPtr);
ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** memory) {
  TANDEM_NCCL_FORWARD(WinGetUserPtr, comm, ncclInvalidUsage, *real, window, memory);
  return guarded([&] {
    given(memory, "outUserPtr") = nullptr;
    const auto range = communicator_of(comm)->range(window, true);
    if (!range)
      throw InvalidArgument(fmt::format("win: {} given, allowed is a window of this communicator", fmt::ptr(window)));
    *memory = range->memory;
    return ncclSuccess;
  });
}

/// Returns where a rank sees a byte of a window.
static ncclResult_t find_on_rank(ncclWindow_t window, std::size_t offset, int rank, void** pointer) {
  return guarded([&] {
    given(pointer, "outPtr") = nullptr;
    for (const auto& communicator : tandem::nccl::all_communicators())
      if (communicator->range(window, true)) {
        *pointer = communicator->on_rank(window, offset, rank);
        return ncclSuccess;
      }
    throw InvalidArgument(fmt::format("window: {} given, allowed is a window of a communicator", fmt::ptr(window)));
  });
}

TANDEM_NCCL_EXPORT(GetLsaDevicePointer);
ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, std::size_t offset, int rank, void** pointer) {
  return find_on_rank(window, offset, rank, pointer);
}

TANDEM_NCCL_EXPORT(GetPeerDevicePointer);
ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, std::size_t offset, int peer, void** pointer) {
  return find_on_rank(window, offset, peer, pointer);
}

TANDEM_NCCL_EXPORT(CommSuspend);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags) {
  TANDEM_NCCL_FORWARD(CommSuspend, comm, ncclInvalidUsage, *real, flags);
  return guarded([&] {
    if (flags != kSuspendMemory)
      throw InvalidArgument(fmt::format("flags: {} given, allowed is {}", flags, kSuspendMemory));
    const auto communicator = communicator_of(comm);
    return tandem::nccl::add_change(communicator, communicator, [communicator] { communicator->suspend(); });
  });
}

TANDEM_NCCL_EXPORT(CommResume);
ncclResult_t pncclCommResume(ncclComm_t comm) {
  TANDEM_NCCL_FORWARD(CommResume, comm, ncclInvalidUsage, *real);
  return guarded([&] {
    const auto communicator = communicator_of(comm);
    return tandem::nccl::add_change(communicator, communicator, [communicator] { communicator->resume(); });
  });
}

TANDEM_NCCL_EXPORT(CommMemStats);
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, std::uint64_t* value) {
  TANDEM_NCCL_FORWARD(CommMemStats, comm, ncclInvalidUsage, *real, stat, value);
  return guarded([&] {
    given(value, "value") = 0;
    const auto use = communicator_of(comm)->memory();
    const auto number = [](Size bytes) { return static_cast<std::uint64_t>(bytes); };
    switch (stat) {
      case ncclStatGpuMemSuspend:
        return *value = number(use.given_back), ncclSuccess;
      case ncclStatGpuMemSuspended:
        return *value = use.is_suspended ? 1 : 0, ncclSuccess;
      case ncclStatGpuMemPersist:
        return *value = number(use.kept), ncclSuccess;
      case ncclStatGpuMemTotal:
        return *value = number(use.kept + (use.is_suspended ? 0 : use.given_back)), ncclSuccess;
    }
    throw InvalidArgument(fmt::format("stat: {} given, allowed are 0 to 3", static_cast<int>(stat)));
  });
}
