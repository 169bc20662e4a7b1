#pragma once
/// The checks of options and calls of experts.

#include <initializer_list>

#include "tandem/layer/experts.h"

namespace tandem::kernels {

constexpr const char* kExperts = "experts";

/// Throws InvalidArgument for options that no plan can have.
void check(const ExpertOptions& options, int pes);
void check_blocks(const ExpertOptions& options, const Machine& machine);
/// A buffer of a call.
struct ExpertBuffer {
  const char* name;
  const void* address;
  Size bytes;
  Size alignment;
};
/// Throws InvalidArgument for buffers that are missing, too small, misaligned, or outputs that overlap others.
void check_buffers(const World& world, std::initializer_list<ExpertBuffer> in, std::initializer_list<ExpertBuffer> out);
/// Throws InvalidArgument for a number outside [least, most].
void check_number(const char* what, Size value, Size least, Size most);
/// Throws InvalidArgument for a call that does not suit the plan.
void check(const ExpertPlan& plan, const World& world, const RouteCall& call);
void check(const ExpertPlan& plan, const World& world, const DispatchCall& call);
/// Throws for a routing with its dispatch, too.
void check(const ExpertPlan& plan, const World& world, const RouteCall& choices, const DispatchCall& rows);
void check(const ExpertPlan& plan, const World& world, const CombineCall& call);

}  // namespace tandem::kernels
