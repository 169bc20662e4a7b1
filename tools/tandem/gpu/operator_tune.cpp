// `tandem tune` of operators on GPUs.
#include <fmt/format.h>

#include <algorithm>

#include "tandem/advanced/operator_tuning.h"
#include "tools/tandem/gpu/job.h"
#include "tools/tandem/gpu/measure/operator_benchmark.h"
#include "tools/tandem/main/gpu.h"

namespace tandem::cli {

namespace {

constexpr int kRounds = 3;

/// Returns the builtin model for predictions of promising configurations.
Machine model_for(const std::string& machine, int pes) {
  if (machine.find("H100") != std::string::npos) return load_machine("h100x8");
  return load_machine(pes <= 2 ? "h200x2" : pes <= 4 ? "h200x4" : "h200x8");
}

/// Returns the median over some rounds of consecutive calls, each the slowest PE's time.
double time_of(World& world, Stream& stream, const std::function<void()>& call, const GpuMethod& method, int calls) {
  Shared shared(world);
  TimedCalls timed(stream, call, calls, method.graph);
  std::vector<double> us;
  for (int round = -method.warmups; round < method.rounds.value_or(kRounds); ++round) {
    world.barrier();
    const double one = shared.largest(timed.run());
    if (round >= 0) us.push_back(one);
  }
  return median(us);
}

}  // namespace

OperatorTuneSetup operator_tune_on_gpus(const TuneOptions& a, const OperatorRun& run) {
  GpuJob job = make_gpu_job(a, {}, {1});
  job.heap_bytes = operator_heap(run, job.pes);
  job.nccl = nullptr;
  OperatorTuneSetup tune;
  tune.speaks = job.speaks;
  tune.setup.in_world = [job](const std::function<void(World&)>& program) {
    run_worlds(job, [&](World& world, Shared&, NcclPeer*) { program(world); });
  };
  const int calls = std::min(calls_of(run, job.pes), job.method.calls);
  tune.setup.time = [method = job.method, calls](World& world, Stream& stream, const std::function<void()>& call) {
    return time_of(world, stream, call, method, calls);
  };
  tune.setup.model = model_for(job.machine(), job.pes);
  tune.setup.most = a.most.value_or(tune.setup.most);
  if (job.speaks && !a.json_to_stdout())
    tune.setup.watch = [op = run.op](const OperatorTrial& trial) {
      fmt::print("{:>10.1f} us, predicted {:>10.1f}  {}{}\n", trial.us, trial.predicted_us, describe(op, trial.options),
                 trial.failure.empty() ? "" : ": dropped: " + trial.failure);
      std::fflush(stdout);
    };
  return tune;
}

}  // namespace tandem::cli
