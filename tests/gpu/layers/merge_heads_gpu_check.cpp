// Checks merge_heads on the GPUs that it finds, against known results. It prints failures, and "N passed, N failed".
// The exit code is 1 if anything failed.
//
//   merge_heads_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <cstdlib>

#include "gpu/counted_check.h"
#include "support/heads_cases.h"

int main(int argc, char** argv) {
  using namespace tandem;
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  const auto start = [](World& world) {
    return [&world](const kernels::HeadsRuns& runs) { return kernels::wrong_of_runs(world, runs); };
  };
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) test::check_cases(pes, test::heads_cases(), test::describe, start);
  return test::finish();
}
