#pragma once
/// The recording of a world's PEs.

#include "cuda/profile/recording.h"
#include "cuda/world/pes.h"

namespace tandem::cuda {

/// `clocks`: of all PEs; `meet`: see Clocks.
std::unique_ptr<Recording> make_recording(const Pes& pes, std::vector<ClockPe> clocks, const CudaOptions& options,
                                          std::function<void()> meet = nullptr);

/// Throws Unsupported where nothing is recorded.
Recording& recording_of(const Pes& pes);

}  // namespace tandem::cuda
