// Checks all_reduce_norm on the GPUs that it finds, against exact results. It prints failures, and "N passed, N
// failed". The exit code is 1 if anything failed.
//
//   all_reduce_norm_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <algorithm>
#include <cstdlib>

#include "gpu/counted_check.h"
#include "support/norm_cases.h"

int main(int argc, char** argv) {
  using namespace tandem;
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  // PEs that share a GPU have fewer blocks than some cases name.
  const auto start = [](World& world) {
    return [&world](kernels::NormRuns runs) {
      runs.options.blocks = std::min(runs.options.blocks, world.machine().gpu.sm_count);
      return kernels::wrong_of_runs(world, runs);
    };
  };
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) test::check_cases(pes, test::norm_cases(), test::describe, start);
  return test::finish();
}
