#pragma once
/// Which plan made the routing in a buffer of the heap: a routing of other sizes has its arrays in other places.
///
/// Only buffers of the heap are noted. Memory of another allocator may hold a copy of a routing, and may have held one
/// of another plan before. Within the heap a routing must be written by its plan, since a copy has the note of the
/// buffer's last writer. Notes follow the order of the calls, not of replays.

#include "tandem/layer/experts.h"

namespace tandem::kernels {

/// Notes that `plan` writes a routing there.
void note_routing(const ExpertPlan& plan, const World& world, const void* routing);
/// Forgets the routings of a plan that ends.
void forget_routings(const ExpertPlan* plan);
/// Throws InvalidArgument for a routing that a plan with other arrays has written there last.
void check_routing(const ExpertPlan& plan, const World& world, const void* routing);

}  // namespace tandem::kernels
