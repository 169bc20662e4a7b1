#pragma once
/// `tandem run` and `tandem bench` of operators on GPUs.

#include <string>
#include <vector>

#include "tools/tandem/bench/bench_options.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

/// Returns whether all subjects are operators. Throws InvalidArgument if only some are.
bool names_operators(const std::vector<std::string>& subjects);

int run_operator_on_gpus(const RunOptions& arguments);
int bench_operators_on_gpus(const BenchOptions& arguments);

}  // namespace tandem::cli
