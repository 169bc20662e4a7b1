#pragma once
/// The simulator's fused GEMM: one worker on each simulated SM processes tiles, gate by gate.

#include <optional>

#include "sim/device/kernel.h"
#include "tandem/advanced/gemm.h"
#include "tandem/team.h"

namespace tandem::sim {

/// Throws InvalidArgument that names the wrong field.
void check_gemm(const Simulator& simulator, int pe, const Gemm& gemm, const Team& team);

/// Returns the grid that computes the GEMM `given` of PE `pe`; none if there is nothing to compute.
std::optional<KernelRequest> gemm_request(const Simulator& simulator, int pe, const Gemm& given, const Team& team);

}  // namespace tandem::sim
