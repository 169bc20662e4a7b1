#pragma once
/// PyTorch's asynchronous tensor parallelism on the same layers, in processes of its own (operators_torch.py).

#include <string>
#include <vector>

#include "gpu/operators_bench_turns.h"

namespace tandem::bench {

/// What it measured of a problem; medians of the slowest rank.
struct TorchTime {
  Operator op{};
  Size m = 0, n = 0, k = 0;
  double us = 0;
  double matmul_us = 0;  ///< of torch.matmul alone on the gathered problem, in turns with it
  bool graph = false;
  bool right = false;
};

/// Runs the script on `gpus` GPUs, before this process takes their memory. No times, and a line that says why, where
/// there is no Python, no PyTorch or no such operator.
std::vector<TorchTime> measure_torch(const Settings& settings, const std::vector<Problem>& problems, int gpus);

}  // namespace tandem::bench
