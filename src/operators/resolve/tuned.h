#pragma once
/// The entry of the tuner's cache for an operator, agreed by all PEs.

#include <optional>

#include "tandem/operators.h"

namespace tandem::ops {

/// Returns the cached configuration for these options if they leave all choices open, a cache is named and all PEs find
/// the same entry. Collective.
std::optional<OperatorOptions> find_agreed(World& world, Operator op, const OperatorOptions& options);

}  // namespace tandem::ops
