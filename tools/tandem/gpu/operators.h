#pragma once
/// `tandem run` and `tandem bench` of operators on GPUs.

#include <string>
#include <vector>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// Returns whether all subjects are operators. Throws InvalidArgument if only some are.
bool names_operators(const std::vector<std::string>& subjects);

int run_operator_on_gpus(const Arguments& arguments);
int bench_operators_on_gpus(const Arguments& arguments);

}  // namespace tandem::cli
