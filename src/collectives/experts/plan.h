#pragma once
/// Makes the plan of experts for each type and transport.

#include "collectives/experts/routing.h"
#include "tandem/layer/experts.h"

namespace tandem::kernels {

/// Returns the arrays of a routing.
ExpertRouting arrays_of(const Routing& routing);

/// Returns the shape of the routings of such a plan, without memory. Throws InvalidArgument as make_experts does.
Routing routing_shape(const ExpertOptions& options, int pes);

/// The calls besides `route` for which a plan has staging.
struct ExpertUses {
  bool dispatches = true;
  bool combines = true;
};

/// Makes a plan with options in which every choice is made. `shape`: its routings, without memory.
std::unique_ptr<ExpertPlan> make_expert_plan(World& world, const ExpertOptions& options, const Routing& shape,
                                             ExpertUses uses);

/// Makes plans for make_experts and for operators, which have transfers of their own.
struct ExpertPlanMaker {
  static std::unique_ptr<ExpertPlan> make(World& world, const ExpertOptions& options, ExpertUses uses);
};

}  // namespace tandem::kernels
