// Tuning of operators where configurations fail on the way: none may hang, each has to be dropped on all PEs, and the
// others go on. PEs are threads of this process or, under `tandem launch -n PES tuning_gpu_check`, processes.
//
// Three kinds of configurations fail. For some the heap is too small. In one the last PE makes no call, so that its
// peers time out. In one the last PE throws.

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {

namespace {

constexpr int kAbsent = 1, kThrowing = 3;  // numbers of trials
/// A, B and C fit, together with partial sums and staging, or with the staging of two alternating plans. Partial sums
/// and staging of two such plans do not fit.
constexpr Size kM = 4096, kN = 4096, kK = 1024;
constexpr Size kSmallHeap = Size{100} << 20;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED expected: %s\n", what);
}

bool is_launched() { return std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr; }
int pes() { return is_launched() ? std::atoi(std::getenv("WORLD_SIZE")) : cuda_devices(); }

CudaOptions world_options(Size heap) {
  CudaOptions options;
  options.heap_bytes = heap;
  options.timeout_s = options.arrival_timeout_s = 1;
  options.join_timeout_s = 20;
  return options;
}

double timed(World& world, Stream& stream, const std::function<void()>& call, int trial) {
  const bool is_last = world.pe() == world.num_pes() - 1;
  if (is_last && trial == kThrowing) throw RuntimeFailure("thrown on purpose");
  if (is_last && trial == kAbsent) return 1;
  call();
  stream.synchronize();
  const double begin = world.time_us();
  for (int i = 0; i < 4; ++i) call();
  stream.synchronize();
  return (world.time_us() - begin) / 4;
}

/// `provoked`: with trials that fail on purpose.
OperatorTuning tune(Operator op, Size heap, bool provoked) {
  OperatorOptions problem;
  problem.m = kM;
  // Parts of each PE have rows of 16 bytes.
  problem.n = round_up(kN, Size{8} * pes());
  problem.k = round_up(kK, Size{8} * pes());
  TuneSetup setup;
  int worlds = 0;  // the first is for the key
  setup.in_world = [&](const std::function<void(World&)>& program) {
    ++worlds;
    if (is_launched())
      program(CudaProcess(placement_from_environment(), world_options(heap)).world());
    else
      CudaThreads(pes(), world_options(heap)).run(program);
  };
  setup.time = [&](World& world, Stream& stream, const std::function<void()>& call) {
    return timed(world, stream, call, provoked ? worlds - 2 : -1);
  };
  setup.model = load_machine("h200x2");
  setup.most = 8;
  return tune_operator(op, problem, setup);
}

void check(Operator op, Size heap, bool provoked) {
  const OperatorTuning tuning = tune(op, heap, provoked);
  int ran = 0, dropped = 0;
  for (const OperatorTrial& trial : tuning.trials) {
    ran += trial.us > 0 ? 1 : 0;
    dropped += trial.failure.empty() ? 0 : 1;
    if (trial.us > 0 || !trial.failure.empty())
      std::printf("%9.1f us  %s%s%s\n", trial.us, describe(op, trial.options).c_str(),
                  trial.failure.empty() ? "" : ": dropped: ", trial.failure.c_str());
  }
  std::printf("%s: %d ran, %d dropped\n", name(op), ran, dropped);
  std::fflush(stdout);
  expect(tuning.key.pes == pes(), "a key on every PE");
  expect(ran >= 2, "two configurations that run");
  expect(dropped >= (provoked ? 2 : heap == kSmallHeap ? 1 : 0), "what fails on purpose is dropped");
  expect(tuning.trials.front().us > 0, "the quickest comes first");
}

}  // namespace

}  // namespace tandem::test

int main() {
  using namespace tandem;
  if (cuda_devices() == 0 || test::pes() < 2) {
    std::printf("no GPU, or one PE\n");
    return 2;
  }
  try {
    test::check(Operator::kAllGatherGemm, Size{1} << 30, true);
    test::check(Operator::kGemmReduceScatter, test::kSmallHeap, false);
  } catch (const std::exception& error) {
    std::printf("FAILED %s\n", error.what());
    return 1;
  }
  std::printf("%d failed\n", test::failures);
  return test::failures > 0 ? 1 : 0;
}
