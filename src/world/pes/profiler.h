#pragma once
/// The recording of a world's PEs.

#include "world/pes/pes.h"

namespace tandem::world {

/// Makes the world's recording. `setup` has an entry for each PE, and the functions of a world of processes.
std::unique_ptr<Profiler> make_profiler(const Pes& pes, ProfilerSetup setup, const WorldOptions& options);

/// Returns the world's recording. Throws Unsupported if nothing is recorded.
Profiler& profiler_of(const Pes& pes);

}  // namespace tandem::world
