// `tandem tune` on GPUs.
#include <fmt/format.h>

#include <algorithm>

#include "tandem/cuda.h"
#include "tandem/error.h"
#include "tools/tandem/gpu/job.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {

namespace {

constexpr Size kMib = Size{1} << 20;
// There are many candidates, and sums are checked by the host.
constexpr Size kCheckedWhole = kMib / 16;
constexpr Size kSampleElements = 4096;
constexpr int kRounds = 7;

/// Splits the sizes: all candidates try the small ones. For the large ones plans stage much and few candidates remain.
std::vector<std::vector<Size>> bands(const std::vector<Size>& sizes) {
  const auto border = std::upper_bound(sizes.begin(), sizes.end(), kMib);
  std::vector<std::vector<Size>> all;
  if (border != sizes.begin()) all.emplace_back(sizes.begin(), border);
  if (border != sizes.end()) all.emplace_back(border, sizes.end());
  return all;
}

/// Returns the heap of a sweep. Each candidate may stage a few times the bytes of the largest call, and its world keeps
/// them.
Size sweep_heap(const GpuJob& job) {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const Size share = static_cast<Size>(free) * 7 / 10 / ceil_div(job.pes, cuda_devices());
  return std::min(50 * job.largest() + 4096 * kMib, share);
}

/// Measures some sizes in one world.
void sweep_band(const TuneOptions& a, GpuJob job, const CollectiveRun& run, tune::Contest& contest, Sweep& sweep) {
  job.heap_bytes = sweep_heap(job);
  const tune::Contest before = contest;
  run_job(job, [&](World& world, CollectiveBenchmark& turns) {
    tune::Contest own = before;  // all PEs reach the same result
    turns.prepare(run);
    for (const Size bytes : job.sizes) {
      std::vector<tune::Measured> all;
      for (const GpuRow& row : turns.measure(bytes, own.at(bytes)).rows) {
        if (!row.check.correct())
          throw CheckFailed(fmt::format("{} {} of {} bytes: {} wrong elements", name(run.collective), row.algorithm,
                                        bytes, row.check.wrong));
        all.push_back({bytes, row.algorithm, row.blocks, row.us});
      }
      own.add(bytes, all);
      if (world.pe() == 0) print_sweep_line(a, name(run.collective), bytes, all);
    }
    if (world.pe() != 0 && !job.by_processes) return;
    sweep.machine = world.machine().name;
    contest = own;
  });
}

}  // namespace

std::vector<Sweep> tune_on_gpus(const TuneOptions& a) {
  GpuJob job = make_gpu_job(a, a.subjects, bench_sizes(a));
  job.method.checked_whole = kCheckedWhole;
  job.method.sample_elements = kSampleElements;
  job.method.rounds = a.iterations.value_or(kRounds);
  std::vector<Sweep> sweeps;
  const std::vector<Size> sizes = job.sizes;
  for (const CollectiveRun& run : job.runs) {
    Sweep& sweep = sweeps.emplace_back();
    sweep.group.pes = job.pes;
    sweep.group.source = sweep_source(a.command_line, job.machine());
    tune::Contest contest(tune::candidates(run.collective, true, a.algorithm.value_or("")));
    for (const std::vector<Size>& band : bands(sizes)) {
      job.sizes = band;
      sweep_band(a, job, run, contest, sweep);
    }
    sweep.measured = contest.measured();
  }
  if (!job.speaks) sweeps.clear();
  return sweeps;
}

}  // namespace tandem::cli
