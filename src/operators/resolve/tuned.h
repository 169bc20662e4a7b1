#pragma once
/// What the tuner's cache says about an operator, agreed by all PEs.

#include "tandem/operators.h"

namespace tandem::ops {

/// The options with the configuration that the cache has for them, where they leave it open, a cache is named and all
/// PEs find the same entry; else as they are. Collective.
OperatorOptions tuned_or(World& world, Operator op, const OperatorOptions& options);

}  // namespace tandem::ops
