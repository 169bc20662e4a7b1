#pragma once
/// Plans whose PEs compare what they call.

#include <memory>
#include <string>

#include "collectives/plan/staged_plan.h"
#include "tandem/collectives.h"

namespace tandem::kernels {

/// `plan`, which copies what `staged` says, each of whose runs is first compared between the PEs by operation, type,
/// root, algorithm, copies and count: on the host (World::calls), and on the devices where World::checks_calls.
/// Collective over the world.
std::unique_ptr<CollectivePlan> compare_calls(World& world, Collective collective, const CollectiveOptions& options,
                                              const Team& team, Staged staged, std::unique_ptr<CollectivePlan> plan);

/// `bytes` bytes from there are not more than the heap's buffer has, if it is one of the heap's. Throws
/// InvalidArgument, which names the argument and the call.
void check_held(const World& world, const std::string& argument, const void* memory, Size bytes,
                const std::string& call);

/// This PE's buffers are apart, or lie as in-place calls have them (tandem/collectives.h). Throws InvalidArgument.
void check_overlap(Collective collective, const std::string& collective_and_algorithm, const std::byte* in,
                   const std::byte* out, Size count, Size element_bytes, int root, const Team& team);

}  // namespace tandem::kernels
