#pragma once
/// `tandem run` and `tandem bench` of the calls of include/tandem/layer on GPUs.

#include <string>
#include <vector>

#include "tools/tandem/bench/bench_options.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

/// Returns whether all subjects are such calls. Throws InvalidArgument if only some are.
bool names_layers(const std::vector<std::string>& subjects);

int run_layer_on_gpus(const RunOptions& arguments);
int bench_layers_on_gpus(const BenchOptions& arguments);

}  // namespace tandem::cli
