#pragma once
/// The checks of options and calls of experts.

#include "tandem/layer/experts.h"

namespace tandem::kernels {

constexpr const char* kExperts = "experts";

/// Throws InvalidArgument for options that no plan can have.
void check(const ExpertOptions& options, int pes);
void check_blocks(const ExpertOptions& options, const Machine& machine);
/// Throws InvalidArgument for a call that does not suit the plan.
void check(const ExpertPlan& plan, const World& world, const RouteCall& call);
void check(const ExpertPlan& plan, const World& world, const DispatchCall& call);
void check(const ExpertPlan& plan, const World& world, const CombineCall& call);

}  // namespace tandem::kernels
