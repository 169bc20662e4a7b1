#pragma once
/// Plans whose PEs compare their calls.

#include <functional>
#include <memory>
#include <string>

#include "collectives/plan/staged_plan.h"
#include "tandem/collectives.h"

namespace tandem::kernels {

/// Wraps the plan that `make` returns, which copies buffers as `staged` describes. Before `make` and before each run
/// the PEs compare operation, type, root, algorithm, copies and count. They do so on the host (World::calls), and
/// before runs on the devices if World::checks_calls. Collective over the world.
std::unique_ptr<CollectivePlan> compare_calls(World& world, Collective collective, const CollectiveOptions& options,
                                              const Team& team, Staged staged,
                                              const std::function<std::unique_ptr<CollectivePlan>()>& make);

/// Throws InvalidArgument, with the argument and the call, if the address lies in a heap buffer that has fewer than
/// `bytes` bytes from there on.
void check_held(const World& world, const std::string& argument, const void* memory, Size bytes,
                const std::string& call);

/// Throws InvalidArgument unless this PE's buffers are separate, or in place as tandem/collectives.h allows.
void check_overlap(Collective collective, const std::string& collective_and_algorithm, const std::byte* in,
                   const std::byte* out, Size count, Size element_bytes, int root, const Team& team);

}  // namespace tandem::kernels
