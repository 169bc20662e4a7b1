// Stress tests of the collectives on this machine's GPUs: thousands of consecutive calls in replayed graphs. Data
// change from call to call, and PEs are late at random. If each PE has a GPU, a graph holds eight calls. If PEs share
// GPUs, it holds three, because each call waits for more blocks there. It prints failures, the number of calls, and "N
// passed, N failed". The exit code is 1 if anything failed.
//
//   stress_gpu_check [REPLAYS [PES]]    replays of each algorithm (1000); only with so many PEs

#include <barrier>
#include <cstdlib>
#include <set>
#include <thread>

#include "gpu/collectives/stress.h"

namespace tandem::test {

constexpr int kReplays = 1000;

namespace {

/// Returns the algorithms that `pes` PEs can run on this machine.
std::vector<AlgorithmInfo> algorithms(int pes) {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    // PEs that share a GPU share its queues: nothing promises that their copies run side by side.
    if (info.name == "multimem" || (info.by_copy_engine && pes > cuda_devices())) continue;
    list.push_back(info);
  }
  return list;
}

std::string describe(const AlgorithmInfo& info) { return fmt::format("{} {}", name(info.collective), info.name); }

Size run_alone(World& world, const AlgorithmInfo& info, int replays, int calls, const std::vector<int>& blocks = {4}) {
  Stress stress(world, info, blocks, calls);
  world.barrier();
  stress.enqueue(replays);
  return stress.wrong();
}

/// Two instances at once, each in a stream of its own.
Size run_together(World& world, const AlgorithmInfo& one, const AlgorithmInfo& other, int replays) {
  Stress first(world, one);
  Stress second(world, other);
  world.barrier();
  constexpr int turns = 10;
  for (int i = 0; i < turns; ++i) {
    first.enqueue(replays / turns);
    second.enqueue(replays / turns);
  }
  return first.wrong() + second.wrong();
}

/// A PE that leaves, also by an error, is not waited for.
struct Leaves {
  std::barrier<>& together;
  ~Leaves() { together.arrive_and_drop(); }
};

/// Two worlds at once. All objects are made before any kernel waits, and destroyed when none waits any more.
void check_two_worlds(int pes, const AlgorithmInfo& one, const AlgorithmInfo& other, int replays) {
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
          stress.enqueue(replays);
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

/// Returns how many calls of single algorithms went right; what all PEs make together is one.
Size check_pes(int pes, int replays) {
  const std::vector<AlgorithmInfo> all = algorithms(pes);
  const bool share = pes > cuda_devices();
  const int calls = share ? Stress::kFewestCalls : Stress::kCalls;
  const int failed_before = failed;
  for (const AlgorithmInfo& info : all)
    check(fmt::format("{}, {} replays of {} calls", describe(info), replays, calls), pes,
          [&](World& world) { return run_alone(world, info, replays, calls); });
  const Size right = Size{replays} * calls * (static_cast<Size>(all.size()) - (failed - failed_before));
  const int few = replays / (share ? 20 : 10);
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    check(describe(all[i]) + ", grids that change", pes, [&](World& world) {
      return run_alone(world, all[i], few, Stress::kCalls, {3, 1, 7});
    });
    check(fmt::format("{} and {} in two streams", describe(all[i]), describe(all[i + 1])), pes,
          [&](World& world) { return run_together(world, all[i], all[i + 1], few); });
  }
  for (std::size_t i = 0; !share && i + 1 < all.size(); i += 5) check_two_worlds(pes, all[i], all[i + 1], few);
  return right;
}

int check_all(int replays, int only) {
  const int devices = cuda_devices();
  if (devices == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  register_litmus_kernels();
  std::set<int> numbers{devices, 3, 4, 8};
  if (only > 0) numbers = {only};
  for (const int pes : numbers) {
    if (pes < devices && only == 0) continue;
    const Size right = check_pes(pes, replays);
    constexpr Size least = 100'000;
    const std::string problem = replays < kReplays || right >= least ? "" : fmt::format("at least {} expected", least);
    report(fmt::format("{} calls back to back with random delays, {} PEs", right, pes), problem);
  }
  return finish();
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::test::check_all(argc > 1 ? std::atoi(argv[1]) : tandem::test::kReplays,
                                 argc > 2 ? std::atoi(argv[2]) : 0);
}
