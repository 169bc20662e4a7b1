#pragma once
/// The simulator's GEMM with hooks: one worker a simulated SM goes through tiles, gate by gate.

#include <functional>

#include "sim/simulator.h"
#include "tandem/gemm.h"
#include "tandem/team.h"

namespace tandem::sim {

/// Throws InvalidArgument naming the field that is wrong.
void check_gemm(const Simulator& simulator, const Gemm& gemm);

/// `cause` is what let it start, `stream` the monitor's number of its stream; `on_finish` is told where the last worker
/// ran.
void run_gemm(Simulator& simulator, int pe, const Gemm& gemm, const Team& team, const Cause& cause, Thread stream,
              std::function<void(Lane)> on_finish);

}  // namespace tandem::sim
