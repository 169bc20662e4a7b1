#pragma once
/// The recording of a world's PEs.

#include "world/pes/pes.h"

namespace tandem::world {

/// `clocks`: of all PEs; `meet`: see ProfilerSetup.
std::unique_ptr<Profiler> make_profiler(const Pes& pes, std::vector<ClockPe> clocks, const WorldOptions& options,
                                        std::function<void()> meet = nullptr);

/// Throws Unsupported where nothing is recorded.
Profiler& profiler_of(const Pes& pes);

}  // namespace tandem::world
