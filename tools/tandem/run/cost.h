#pragma once
/// The cost of simulations with very many PEs.

#include <string>

#include "tandem/collectives.h"

namespace tandem::cli {

/// Returns a line about the duration of so many simulated calls if it is minutes, else "". Throws InvalidArgument if
/// they need more than `memory_bytes`.
std::string cost_note(Collective collective, int pes, int calls, double memory_bytes);

}  // namespace tandem::cli
