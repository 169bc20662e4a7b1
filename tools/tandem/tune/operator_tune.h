#pragma once
/// `tandem tune` of operators: whole configurations, stored in a cache file.

#include "tandem/operators.h"
#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

int tune_operators(const Arguments& arguments, const std::vector<Operator>& operators);

}  // namespace tandem::cli
