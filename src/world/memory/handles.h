#pragma once
/// How the memory of a device is handed from process to process.

#include <vector>

#include "bootstrap/local/fd_exchange.h"
#include "world/device/devices.h"

namespace tandem::world {

/// Returns the kind of handles that all PEs support: file descriptors over local sockets, or else fabric handles.
/// Fabric handles are bytes that go encrypted through the rendezvous. They serve processes in different network name
/// spaces, and devices that export no descriptors. TANDEM_HANDLES in the environment, "fd" or "fabric", allows only
/// that kind. Collective. If no kind is left, throws Unsupported on all PEs, with the reason for each kind.
Handles agree_on_handles(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device);

/// Returns whether the PEs are on several hosts, and all of them have fabric handles: they are as those of one host.
/// Collective.
bool shares_across_hosts(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device);

/// Imports the chunks of all other PEs, and returns them by PE, with none for this PE. There are none of PEs on other
/// hosts, which are reached through mailboxes. All PEs give equally many chunks
/// (at most FdExchange::kMost) of the same sizes. Collective. If one PE cannot export or import a chunk, all PEs throw.
std::vector<std::vector<Chunk>> exchange_chunks(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange,
                                                DeviceMemory& memory, Handles handles, const std::vector<Chunk>& own);
void release(DeviceMemory& memory, const std::vector<Chunk>& chunks);

}  // namespace tandem::world
