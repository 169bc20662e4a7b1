#pragma once
/// Makes the plan of experts for each type and transport.

#include "collectives/experts/routing.h"
#include "tandem/layer/experts.h"

namespace tandem::kernels {

/// Returns the arrays of a routing.
ExpertRouting arrays_of(const Routing& routing);

/// Makes a plan with options in which every choice is made. `shape`: its routings, without memory.
std::unique_ptr<ExpertPlan> make_expert_plan(World& world, const ExpertOptions& options, const Routing& shape);

}  // namespace tandem::kernels
