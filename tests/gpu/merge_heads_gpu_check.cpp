// Checks merge_heads on the GPUs that it finds, against known results. It prints failures, and "N passed, N failed".
// The exit code is 1 if anything failed.
//
//   merge_heads_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <cstdlib>
#include <mutex>

#include "gpu/counted_check.h"
#include "support/heads_cases.h"

namespace tandem::test {

namespace {

void check_all(int pes) {
  const std::vector<kernels::HeadsRuns> cases = heads_cases();
  std::vector<std::string> problems(cases.size());
  std::string error;
  std::mutex mutex;
  try {
    CudaThreads threads(pes, checked_world());
    threads.run([&](World& world) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::string wrong = kernels::wrong_of_runs(world, cases[i]);
        const std::lock_guard lock(mutex);
        if (!wrong.empty()) problems[i] = wrong;
      }
    });
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  for (std::size_t i = 0; i < cases.size(); ++i)
    report(describe(cases[i], pes), problems[i].empty() ? error : problems[i]);
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) tandem::test::check_all(pes);
  return tandem::test::finish();
}
