// Stress tests of the collectives on the GPUs that it finds: thousands of calls back to back in replayed graphs, with
// data that change from call to call and PEs that are late at random. Prints what fails, and "N passed, N failed"; exit
// code 1 if anything failed.
//
//   stress_gpu_check [CALLS [PES]]    calls of each algorithm (8000: 1,000 replays); only with so many PEs

#include <barrier>
#include <cstdlib>
#include <set>
#include <thread>

#include "gpu/stress.h"

namespace tandem::test {

namespace {

/// Those that `pes` PEs can run on this machine.
std::vector<AlgorithmInfo> algorithms(int pes) {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    const bool by_copy_engine = info.name.find("copy_engine") != std::string::npos;
    // PEs that share a GPU share its queues: nothing promises that their copies run side by side.
    if (info.name == "multimem" || (by_copy_engine && pes > cuda_devices())) continue;
    list.push_back(info);
  }
  return list;
}

std::string describe(const AlgorithmInfo& info) { return fmt::format("{} {}", name(info.collective), info.name); }

Size run_alone(World& world, const AlgorithmInfo& info, int calls, const std::vector<int>& blocks = {4}) {
  Stress stress(world, info, blocks);
  world.barrier();
  stress.enqueue(calls);
  return stress.wrong();
}

/// Two instances at once, each in a stream of its own.
Size run_together(World& world, const AlgorithmInfo& one, const AlgorithmInfo& other, int calls) {
  Stress first(world, one);
  Stress second(world, other);
  world.barrier();
  constexpr int turns = 10;
  for (int i = 0; i < turns; ++i) {
    first.enqueue(calls / turns);
    second.enqueue(calls / turns);
  }
  return first.wrong() + second.wrong();
}

/// Whoever goes, by an error too, is not waited for.
struct Leaves {
  std::barrier<>& together;
  ~Leaves() { together.arrive_and_drop(); }
};

/// Two worlds at once. What is made, is made before any kernel waits, and taken apart when none does any more.
void check_two_worlds(int pes, const AlgorithmInfo& one, const AlgorithmInfo& other, int calls) {
  std::string problems[2];
  Size wrong[2] = {0, 0};
  try {
    CudaThreads first(pes, checked_world());
    CudaThreads second(pes, checked_world());
    std::barrier together(2 * pes);
    const auto run = [&](CudaThreads& threads, const AlgorithmInfo& info, int which) {
      std::atomic<Size> sum{0};
      try {
        threads.run([&](World& world) {
          const Leaves leaves{together};
          Stress stress(world, info);
          together.arrive_and_wait();
          stress.enqueue(calls);
          sum += stress.wrong();
          together.arrive_and_wait();
        });
      } catch (const std::exception& error) {
        problems[which] = error.what();
      }
      wrong[which] = sum;
    };
    std::thread beside([&] { run(second, other, 1); });
    run(first, one, 0);
    beside.join();
  } catch (const std::exception& error) {
    problems[0] = error.what();
  }
  std::string problem = problems[0] + problems[1];
  if (problem.empty() && wrong[0] + wrong[1] > 0) problem = fmt::format("{} and {} words wrong", wrong[0], wrong[1]);
  report(fmt::format("{} and {} in two worlds, {} PEs", describe(one), describe(other), pes), problem);
}

void check_pes(int pes, int calls) {
  const std::vector<AlgorithmInfo> all = algorithms(pes);
  for (const AlgorithmInfo& info : all)
    check(fmt::format("{}, {} calls", describe(info), calls), pes,
          [&](World& world) { return run_alone(world, info, calls); });
  const int few = calls / 10;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    check(describe(all[i]) + ", grids that change", pes, [&](World& world) {
      return run_alone(world, all[i], few, {3, 1, 7});
    });
    check(fmt::format("{} and {} in two streams", describe(all[i]), describe(all[i + 1])), pes,
          [&](World& world) { return run_together(world, all[i], all[i + 1], few); });
  }
  if (pes > cuda_devices()) return;
  for (std::size_t i = 0; i + 1 < all.size(); i += 5) check_two_worlds(pes, all[i], all[i + 1], few);
}

int check_all(int calls, int only) {
  const int devices = cuda_devices();
  if (devices == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  register_litmus_kernels();
  if (only > 0) {
    check_pes(only, calls);
    return finish();
  }
  check_pes(devices, calls);
  std::set<int> shared{3, 4, 8};
  shared.erase(devices);
  for (const int pes : shared)
    if (pes > devices) check_pes(pes, calls / 20);
  return finish();
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : 8'000, argc > 2 ? std::atoi(argv[2]) : 0);
}
