#pragma once
/// `tandem tune` of operators: their configurations as a whole, into a cache file.

#include "tandem/operators.h"
#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

int tune_operators(const Arguments& arguments, const std::vector<Operator>& operators);

}  // namespace tandem::cli
