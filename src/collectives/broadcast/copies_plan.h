#pragma once
/// Broadcast by copy engines: a scatter over the other n-1 PEs, whose parts they pass on to each other, pipelined in
/// chunks.
///
/// The bytes leave the root once, at the copy engines' rate, so it is for large sizes. No SM is used except for a warp
/// that waits. It works on its own streams, as make_copy_engine_plan. In-place allowed. One node only.

#include <memory>

#include "collectives/plan/collective.h"

namespace tandem::kernels {

std::unique_ptr<CollectivePlan> make_broadcast_copies(World& world, const CollectiveOptions& options, const Team& team);

}  // namespace tandem::kernels
