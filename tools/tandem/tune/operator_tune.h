#pragma once
/// `tandem tune` of operators: whole configurations, stored in a cache file.

#include "tandem/operators.h"
#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

int tune_operators(const TuneOptions&, const std::vector<Operator>& operators);

}  // namespace tandem::cli
