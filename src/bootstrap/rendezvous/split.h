#pragma once
/// New worlds from the processes of an existing world.

#include <optional>

#include "bootstrap/rendezvous/world_member.h"
#include "tandem/advanced/placement.h"

namespace tandem::bootstrap {

/// The processes of `world` with the same `color` get a common id, and numbers in the order of `key`, then of their
/// PEs. This is the numbering of MPI_Comm_split (MPI 4.1, section 7.4.2). Returns nothing if the color is negative.
/// Collective over the world. The new secret is derived from the world's and never sent. If one process cannot open
/// a rendezvous, all throw.
std::optional<Placement> split(WorldMember& world, int color, int key);

}  // namespace tandem::bootstrap
