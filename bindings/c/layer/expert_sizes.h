#pragma once
/// The sizes of buffers of experts, as C programs get them.

#include "tandem.h"
#include "tandem/layer/experts.h"

namespace tandem::c {

/// Returns the sizes of such a plan on `pes` PEs.
tandem_experts_sizes expert_sizes_in_c(const ExpertOptions& options, int pes);

}  // namespace tandem::c
