// Stress test of experts on the GPUs that it finds. Each of several plans makes 10^5 dispatches and as many combines in
// replayed graphs, with a routing for every third one. PEs are late at random. The bits of each call are compared, on
// the device, with those of the first call. PEs are threads of this process or, under
// `tandem launch -n PES experts_stress_gpu_check`, processes. It prints failures, and "N passed, N failed". The exit
// code is 1 if anything failed.
//
//   experts_stress_gpu_check [CALLS [PES]]    calls of each plan (100000); threads (the GPUs, at least 2)

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "gpu/counted_check.h"
#include "gpu/graph.h"
#include "gpu/memory/litmus_device.h"
#include "support/expert_stress.h"

namespace tandem::test {

namespace {

constexpr int kCalls = 100'000;
constexpr int kRounds = 20;      // a PE is late by milliseconds at the beginning of each
constexpr int kMostPasses = 15;  // of about a microsecond each
constexpr Size kHidden = 7168;

/// The plans of the CPUs' test, and the rows of a large model.
std::vector<ExpertOptions> plans(int pes) {
  std::vector<ExpertOptions> list = stressed_experts(pes);
  list.push_back(list.front());
  list.back().hidden = kHidden;
  return list;
}

bool is_launched() { return std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr; }

void in_world(int pes, const std::function<void(World&)>& program) {
  if (is_launched())
    program(CudaProcess(placement_from_environment(), checked_world()).world());
  else
    CudaThreads(pes, checked_world()).run(program);
}

void check_plan(const ExpertOptions& options, int calls, int pes) {
  const int turns = std::max(1, calls / (kRounds * ExpertStress::kSets * ExpertStress::kUses));
  Size wrong = 0;
  std::string problem;
  std::mutex mutex;
  try {
    in_world(pes, [&](World& world) {
      ExpertStress stress(world, options, kMostPasses, capture_graph);
      world.barrier();  // making a graph may wait for the kernels of other PEs on the same GPU
      const Size words = stress.wrong(kRounds, turns);
      const std::lock_guard lock(mutex);
      wrong += words;
    });
    if (wrong > 0) problem = fmt::format("{} words differ from the first call", wrong);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  report(fmt::format("{} hidden {}, {} calls with the bits of the first ones, {} PEs", describe_stress(options),
                     options.hidden, kRounds * turns * ExpertStress::kSets * ExpertStress::kUses, pes),
         problem);
}

int check_all(int calls, int only) {
  const int devices = cuda_devices();
  if (devices == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  register_litmus_kernels();
  const int pes = is_launched() ? std::atoi(std::getenv("WORLD_SIZE")) : only > 0 ? only : std::max(devices, 2);
  for (const ExpertOptions& options : plans(pes)) check_plan(options, calls, pes);
  return finish();
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : tandem::test::kCalls,
                                 argc > 2 ? std::atoi(argv[2]) : 0);
}
