#pragma once
/// Plans whose PEs compare what they call before each call.

#include <memory>

#include "tandem/collectives.h"

namespace tandem::kernels {

/// `plan`, and before each of its runs an agreement on operation, type, root, algorithm and count. Collective over the
/// world.
std::unique_ptr<CollectivePlan> check_calls(World& world, Collective collective, const CollectiveOptions& options,
                                            const Team& team, std::unique_ptr<CollectivePlan> plan);

}  // namespace tandem::kernels
