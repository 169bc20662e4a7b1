#pragma once
/// The simulator's GEMM with hooks: one worker a simulated SM goes through tiles, gate by gate.

#include <functional>

#include "sim/simulator.h"
#include "tandem/gemm.h"
#include "tandem/team.h"

namespace tandem::sim {

/// Throws InvalidArgument naming the field that is wrong.
void check_gemm(const Simulator& simulator, const Gemm& gemm);

void run_gemm(Simulator& simulator, int pe, const Gemm& gemm, const Team& team, std::function<void()> on_finish);

}  // namespace tandem::sim
