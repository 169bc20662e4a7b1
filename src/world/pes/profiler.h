#pragma once
/// The recording of a world's PEs.

#include "world/pes/pes.h"

namespace tandem::world {

/// Makes the world's recording. `clocks` has an entry for each PE; see ProfilerSetup for `meet`.
std::unique_ptr<Profiler> make_profiler(const Pes& pes, std::vector<ClockPe> clocks, const WorldOptions& options,
                                        std::function<void()> meet = nullptr);

/// Returns the world's recording. Throws Unsupported if nothing is recorded.
Profiler& profiler_of(const Pes& pes);

}  // namespace tandem::world
