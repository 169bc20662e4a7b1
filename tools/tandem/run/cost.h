#pragma once
/// The cost of a simulation between very many PEs.

#include <string>

#include "tandem/collectives.h"

namespace tandem::cli {

/// Returns a line about the time that the simulation of so many calls takes, where that is minutes; else nothing.
/// Throws InvalidArgument where it needs more than `memory_bytes`.
std::string cost_note(Collective collective, int pes, int calls, double memory_bytes);

}  // namespace tandem::cli
