#pragma once
/// The simulator's GEMM with hooks: one worker a simulated SM goes through tiles, gate by gate.

#include <optional>

#include "sim/device/kernel.h"
#include "tandem/advanced/gemm.h"
#include "tandem/team.h"

namespace tandem::sim {

/// Throws InvalidArgument naming the field that is wrong.
void check_gemm(const Simulator& simulator, int pe, const Gemm& gemm);

/// The grid that works on PE `pe`'s `gemm`; none where there is nothing to do.
std::optional<KernelRequest> gemm_request(const Simulator& simulator, int pe, const Gemm& gemm, const Team& team);

}  // namespace tandem::sim
