// Checks all_reduce_norm on the GPUs that it finds, against exact results. It prints failures, and "N passed, N
// failed". The exit code is 1 if anything failed.
//
//   all_reduce_norm_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <cstdlib>
#include <mutex>

#include "gpu/counted_check.h"
#include "support/norm_cases.h"

namespace tandem::test {

namespace {

/// A world costs a tenth of a second, so several cases share one.
constexpr std::size_t kCasesOfAWorld = 12;

void check_some(int pes, const std::vector<kernels::NormRuns>& cases, std::size_t first, std::size_t last) {
  std::vector<std::string> problems(last - first);
  std::string error;
  std::mutex mutex;
  try {
    CudaThreads threads(pes, checked_world());
    threads.run([&](World& world) {
      for (std::size_t i = first; i < last; ++i) {
        const std::string wrong = kernels::wrong_of_runs(world, cases[i]);
        const std::lock_guard lock(mutex);
        if (!wrong.empty()) problems[i - first] = wrong;
      }
    });
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  for (std::size_t i = first; i < last; ++i)
    report(describe(cases[i], pes), problems[i - first].empty() ? error : problems[i - first]);
}

void check_all(int pes) {
  const std::vector<kernels::NormRuns> cases = norm_cases();
  for (std::size_t first = 0; first < cases.size(); first += kCasesOfAWorld)
    check_some(pes, cases, first, std::min(first + kCasesOfAWorld, cases.size()));
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  const int only = argc > 1 ? std::atoi(argv[1]) : 0;
  for (const int pes : {1, 2, 3, 4})
    if (only == 0 || pes == only) tandem::test::check_all(pes);
  return tandem::test::finish();
}
