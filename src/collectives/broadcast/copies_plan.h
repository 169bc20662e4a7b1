#pragma once
/// Broadcast by copy engines: a scatter over the other n-1 PEs, whose parts they pass on to each other, pipelined in
/// chunks.
///
/// The bytes leave the root once, at the copy engines' rate: for large sizes. No SM is used but by a warp that waits.
/// Works on streams of its own, as make_copy_engine_plan. In-place allowed. One node only.

#include <memory>

#include "collectives/plan/collective.h"

namespace tandem::kernels {

std::unique_ptr<CollectivePlan> make_broadcast_copies(World& world, const CollectiveOptions& options, const Team& team);

}  // namespace tandem::kernels
