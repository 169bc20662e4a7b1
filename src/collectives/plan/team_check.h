#pragma once
/// Checks of teams from callers.

#include "tandem/team.h"
#include "tandem/world.h"

namespace tandem::kernels {

/// Throws InvalidArgument for a team that is not made of the world's PEs, or not from this PE's view.
void check_team(const World& world, const Team& team);

}  // namespace tandem::kernels
