#pragma once
/// Errors of calls with bad arguments.

#include <functional>
#include <string>

#include "tandem/simulation.h"

namespace tandem::test {

/// Runs `program` on both of two simulated PEs. Returns the error of PE 0, "" if there is none.
std::string refusal_of(const std::function<void(World&)>& program);

}  // namespace tandem::test
