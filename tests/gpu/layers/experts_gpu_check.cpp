// Checks routing, dispatch and combine of experts on the GPUs that it finds, against known results. It prints failures,
// and "N passed, N failed". The exit code is 1 if anything failed.
//
//   experts_gpu_check [PES]    only so many PEs (default: 1, 2, 3 and 4; PEs may share a GPU)

#include <cstdlib>
#include <mutex>

#include "gpu/counted_check.h"
#include "support/expert_cases.h"

namespace tandem::test {

namespace {

/// The cases of the simulator, and rows and tokens of a large model.
std::vector<kernels::ExpertRuns> cases_for(int pes) {
  std::vector<kernels::ExpertRuns> cases = expert_cases(pes);
  for (const ExpertWire wire : {ExpertWire::kType, ExpertWire::kQuantised}) {
    kernels::ExpertRuns runs;
    runs.options = {.max_tokens = 64, .hidden = 7168, .experts = 16 * pes, .top_k = 8, .wire = wire};
    runs.options.align = 64;
    runs.rounds = {{"random", 64, 3}, {"one", 17, 2}, {"zipf:1", 64, 1}};
    cases.push_back(runs);
    runs.options.transport = ExpertTransport::kFused;
    cases.push_back(runs);
    runs.options.align = 1;
    runs.options.transport = ExpertTransport::kChunks;
    runs.options.batches = 2;
    runs.options.max_tokens = 300;
    runs.options.blocks = 32;  // several rounds of chunks
    runs.rounds = {{"random", 300, 3}, {"ragged", 300, 2}};
    cases.push_back(runs);
  }
  return cases;
}

void check_all(int pes) {
  const std::vector<kernels::ExpertRuns> cases = cases_for(pes);
  std::vector<std::string> problems(cases.size());
  std::string error;
  std::mutex mutex;
  try {
    CudaOptions options = checked_world();
    options.heap_bytes = Size{8} << 30;  // a trial keeps its buffers until the world ends
    CudaThreads threads(pes, options);
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
