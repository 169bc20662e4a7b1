// Checks all_reduce_norm on the GPUs that it finds, against exact results. It prints failures, and "N passed, N
// failed". The exit code is 1 if anything failed.
//
//   all_reduce_norm_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <algorithm>
#include <cstdlib>

#include "collectives/all_reduce_norm/algorithms.h"
#include "collectives/all_reduce_norm/row_parts.h"
#include "gpu/counted_check.h"
#include "support/norm_cases.h"

int main(int argc, char** argv) {
  using namespace tandem;
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  // PEs that share a GPU have fewer blocks than some cases name, and than the longest rows have parts.
  const auto start = [](World& world) {
    return [&world](kernels::NormRuns runs) {
      AllReduceNormOptions& o = runs.options;
      const int most = world.machine().gpu.sm_count;
      o.blocks = std::min(o.blocks, most);
      if (kernels::named_norm(o.algorithm).about.splits_rows)
        o.hidden = std::min(o.hidden, (o.blocks > 0 ? o.blocks : most) * kernels::kPartBytes / size_of(o.type));
      return kernels::wrong_of_runs(world, runs);
    };
  };
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) test::check_cases(pes, test::norm_cases(), test::describe, start);
  return test::finish();
}
