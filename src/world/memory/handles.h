#pragma once
/// How the memory of a device is handed from process to process.

#include <vector>

#include "bootstrap/local/fd_exchange.h"
#include "world/device/devices.h"

namespace tandem::world {

/// How PEs that are processes share memory.
struct Sharing {
  Handles handles = Handles::kDescriptors;
  Team pes;                  ///< those whose memory this PE maps
  bool spans_hosts = false;  ///< they are all PEs, and not all of one host
};

/// Returns the way that all PEs support. PEs of several hosts that reach each other's memory by fabric handles are as
/// those of one host, and each PE tries that. Else PEs share memory within a host: by file descriptors over local
/// sockets, or else by fabric handles. These are bytes that go encrypted through the rendezvous, and serve devices that
/// export no descriptors. TANDEM_HANDLES in the environment, "fd" or "fabric", allows only that kind. Collective. If no
/// kind is left, throws Unsupported on all PEs, with the reason for each kind.
Sharing agree_on_handles(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device);

/// Imports the chunks of the other PEs that share memory, and returns them by PE. There are none of this PE, nor of PEs
/// on other hosts that are reached through mailboxes. All PEs give equally many chunks (at most FdExchange::kMost) of
/// the same sizes. Collective. If one PE cannot export or import a chunk, all PEs throw.
std::vector<std::vector<Chunk>> exchange_chunks(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange,
                                                DeviceMemory& memory, const Sharing& sharing,
                                                const std::vector<Chunk>& own);
void release(DeviceMemory& memory, const std::vector<Chunk>& chunks);

}  // namespace tandem::world
