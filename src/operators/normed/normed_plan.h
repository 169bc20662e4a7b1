#pragma once
/// Plans whose sums are followed by residual, norm and quantisation (OperatorOptions::norm).

#include "operators/plan/operator.h"

namespace tandem::ops {

/// Returns the same choices without the steps after the sums.
Settings without_norm(Settings settings);

/// Adds these steps to `plain`, the plan of without_norm(settings).
std::unique_ptr<OperatorPlan> make_normed(World& world, Operator op, const Settings& settings,
                                          std::unique_ptr<OperatorPlan> plain);

}  // namespace tandem::ops
