#pragma once
/// Plans whose PEs compare what they call.

#include <memory>

#include "kernels/staged_plan.h"
#include "tandem/collectives.h"

namespace tandem::kernels {

/// `plan`, which copies what `staged` says, each of whose runs is first compared between the PEs by operation, type,
/// root, algorithm, copies and count: on the host (World::calls), and on the devices where World::checks_calls.
/// Collective over the world.
std::unique_ptr<CollectivePlan> compare_calls(World& world, Collective collective, const CollectiveOptions& options,
                                              const Team& team, Staged staged, std::unique_ptr<CollectivePlan> plan);

/// This PE's buffers are apart, or lie as in-place calls have them (tandem/collectives.h). Throws InvalidArgument.
void check_overlap(Collective collective, const std::string& collective_and_algorithm, const std::byte* in,
                   const std::byte* out, Size count, Size element_bytes, int root, const Team& team);

}  // namespace tandem::kernels
