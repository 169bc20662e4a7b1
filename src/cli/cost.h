#pragma once
/// What a simulation between very many PEs costs on this computer.

#include <string>

#include "tandem/collectives.h"

namespace tandem::cli {

/// For people: how long the simulation of so many calls takes, where that is minutes; else empty. Throws
/// InvalidArgument where it needs more than `memory_bytes`.
std::string cost_note(Collective collective, int pes, int calls, double memory_bytes);

}  // namespace tandem::cli
