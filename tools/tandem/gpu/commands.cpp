// `tandem run` and `tandem bench` on GPUs.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tandem/cuda.h"
#include "tools/tandem/gpu/job.h"
#include "tools/tandem/gpu/layers.h"
#include "tools/tandem/gpu/operators.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {

namespace {

Result to_result(const GpuJob& job, const CollectiveRun& run, const GpuSize& size) {
  const GpuRow& row = size.rows.front();
  Result result;
  result.op = name(run.collective);
  result.backend = "cuda";
  result.machine = job.machine();
  result.pes = job.pes;
  result.bytes = size.bytes;
  result.count = size.count;
  result.bus_factor = bus_factor(run.collective, job.pes);
  result.dtype = name(run.options.type);
  result.extras = extras_of(run);
  result.algorithm = row.algorithm;
  if (run.explain) result.options = row.choices;
  result.seed = job.method.seed;
  result.check = row.check;
  result.time_us = row.us;
  return result;
}

std::string header(const GpuJob& job) {
  std::string text = fmt::format("#{:>12} {:>13} {:>6} {:>7} {:>11} {:>8} {:>8} {:>7}", "size", "count", "type",
                                 "redop", "time", "algbw", "busbw", "#wrong");
  if (job.nccl) text += fmt::format(" {:>11} {:>11}", "nccl", "nccl-window");
  return text + fmt::format("  algorithm\n#{:>12} {:>13} {:>6} {:>7} {:>11} {:>8} {:>8}", "(B)", "(elements)", "", "",
                            "(us)", "(GB/s)", "(GB/s)");
}

std::string line(const GpuJob& job, const CollectiveRun& run, const GpuSize& size) {
  const Result r = to_result(job, run, size);
  std::string text = fmt::format("{:>13} {:>13} {:>6} {:>7} {:>11.2f} {:>8.2f} {:>8.2f} {:>7}", size.bytes, size.count,
                                 r.dtype, reduces(run.collective) ? name(run.options.op) : "none", r.time_us,
                                 r.algorithm_bandwidth().value_or(0), r.bus_bandwidth().value_or(0), r.check->wrong);
  if (job.nccl)
    for (const char* const peer : {"nccl", "nccl-window"}) {
      const auto found = size.peers.find(peer);
      text += found == size.peers.end() ? fmt::format(" {:>11}", "N/A") : fmt::format(" {:>11.2f}", found->second);
    }
  return text + "  " + r.algorithm;
}

}  // namespace

int count_gpus() { return cuda_devices(); }

std::string cuda_build() { return "with CUDA for " TANDEM_CUDA_BUILD; }

int run_on_gpus(const RunOptions& a) {
  if (names_layers({a.subject})) return run_layer_on_gpus(a);
  if (names_operators({a.subject})) return run_operator_on_gpus(a);
  Pictures pictures(a);
  GpuJob job = make_gpu_job(a, {a.subject}, {bytes_of(a)});
  job.record = pictures.wanted();
  job.runs.front().explain = a.explain;
  const CollectiveRun& run = job.runs.front();
  GpuSize measured;
  const auto on_timeline = [&](const trace::Timeline& timeline, const ProfileInfo& info) {
    pictures.add("measured", timeline);
    if (info.lost_operations + info.lost_work > 0)
      complain(fmt::format("the timeline lacks {} operations, and {} launches or copies", info.lost_operations,
                           info.lost_work));
  };
  run_job(
      job,
      [&](World& world, CollectiveBenchmark& turns) {
        turns.prepare(run);
        const GpuSize size = turns.measure(job.largest(), {tune::Candidate{}});
        if (world.pe() == 0) measured = size;
      },
      on_timeline);
  if (!job.speaks) return kRight;
  const Result result = to_result(job, run, measured);
  const auto written = pictures.write(result);
  nlohmann::ordered_json json = to_json(result);
  json.update(result_row(job, run, measured, measured.rows.front()));
  write_json(a, json);
  if (!a.json_to_stdout()) {
    std::cout << to_table(result);
    for (const auto& [peer, us] : measured.peers) std::cout << fmt::format("  {:<15}{:.2f} us\n", peer, us);
    for (const std::string& path : written) std::cout << "wrote " << path << '\n';
  }
  return result.check->correct() ? kRight : kWrong;
}

int bench_on_gpus(const BenchOptions& a) {
  if (names_layers(a.subjects)) return bench_layers_on_gpus(a);
  if (names_operators(a.subjects)) return bench_operators_on_gpus(a);
  const GpuJob job = make_gpu_job(a, a.subjects, bench_sizes(a));
  nlohmann::ordered_json json = result_head(job, a);
  Size wrong = 0;
  const auto print = [&](const std::string& text) {
    if (a.json_to_stdout()) return;
    fmt::print("{}\n", text);
    std::fflush(stdout);
  };
  for (const CollectiveRun& run : job.runs) {
    // It has its own world and communicator, because NCCL's broadcast of 4 MB hung after its sends and receives.
    run_job(job, [&](World& world, CollectiveBenchmark& turns) {
      turns.prepare(run);
      if (world.pe() == 0)
        print(fmt::format("# {}, {} PEs on {}{}{}\n{}", name(run.collective), job.pes, job.machine(),
                          run.in_place ? ", in-place" : "", job.method.graph ? ", graph" : "", header(job)));
      for (const Size bytes : job.sizes) {
        const GpuSize size = turns.measure(bytes, {tune::Candidate{}});
        if (world.pe() != 0) continue;
        print(line(job, run, size));
        json["rows"].push_back(result_row(job, run, size, size.rows.front()));
        wrong += size.rows.front().check.wrong;
      }
    });
  }
  if (!job.speaks) return kRight;
  print(fmt::format("# wrong elements: {} {}", wrong, wrong == 0 ? "OK" : "FAILED"));
  write_json(a, json);
  return wrong == 0 ? kRight : kWrong;
}

}  // namespace tandem::cli
