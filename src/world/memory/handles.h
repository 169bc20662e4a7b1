#pragma once
/// How the memory of a device is handed from process to process.

#include <vector>

#include "bootstrap/local/fd_exchange.h"
#include "world/device/devices.h"

namespace tandem::world {

/// The way that all PEs have: file descriptors over local sockets, or else fabric handles (bytes that go encrypted
/// through the rendezvous: for processes in different network name spaces, or where the device exports no descriptors).
/// TANDEM_HANDLES in the environment, "fd" or "fabric", leaves one of them. Collective. Throws Unsupported on all PEs
/// where there is none, and says what each way lacks.
Handles agree_on_handles(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device);

/// Every PE's chunks, imported, by PE; the own ones are left out. All give as many of the same sizes (at most
/// FdExchange::kMost). Collective; what one PE cannot hand over or take is an error of all.
std::vector<std::vector<Chunk>> exchange_chunks(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange,
                                                DeviceMemory& memory, Handles handles, const std::vector<Chunk>& own);
void release(DeviceMemory& memory, const std::vector<Chunk>& chunks);

}  // namespace tandem::world
