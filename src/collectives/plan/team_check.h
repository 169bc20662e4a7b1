#pragma once
/// Teams as callers give them.

#include "tandem/team.h"
#include "tandem/world.h"

namespace tandem::kernels {

/// Throws InvalidArgument for what is no team of the world's PEs, or is not seen from this one.
void check_team(const World& world, const Team& team);

}  // namespace tandem::kernels
