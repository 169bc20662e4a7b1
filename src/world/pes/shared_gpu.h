#pragma once
/// Processes on one GPU, which TANDEM_SHARE_GPU allows for development and tests.

#include <vector>

#include "bootstrap/rendezvous/world_member.h"
#include "world/device/devices.h"

namespace tandem::world {

/// Returns a number of each PE's device, in the order of the PEs; processes on one GPU have the same. Throws
/// Unsupported if there are such and TANDEM_SHARE_GPU does not allow them. Throws InvalidArgument if PEs differ in the
/// variable, or one has a value that does not exist. Collective.
std::vector<int> number_devices(bootstrap::WorldMember& member, Devices& devices, int device);
/// Returns whether two PEs have the same number.
bool are_shared(const std::vector<int>& numbers);

}  // namespace tandem::world
