#pragma once
/// Plans whose PEs compare what they call.

#include <memory>

#include "tandem/collectives.h"

namespace tandem::kernels {

/// `plan`, each of whose runs is first compared between the PEs by operation, type, root, algorithm and count: on the
/// host (World::calls), and on the devices where World::checks_calls. Collective over the world.
std::unique_ptr<CollectivePlan> compare_calls(World& world, Collective collective, const CollectiveOptions& options,
                                              const Team& team, std::unique_ptr<CollectivePlan> plan);

}  // namespace tandem::kernels
