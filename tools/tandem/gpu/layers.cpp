// `tandem run` and `tandem bench` of the calls of include/tandem/layer on GPUs.
#include "tools/tandem/gpu/layers.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "tools/tandem/gpu/job.h"
#include "tools/tandem/gpu/measure/timed_calls.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {

namespace {

constexpr int kRounds = 25;

GpuJob make_layer_job(const Arguments& a, const LayerRun& run, Size most) {
  if (a.buffers) throw InvalidArgument(fmt::format("--buffers: does not apply to {}", run.describe(most).op));
  GpuJob job = make_gpu_job(a, {}, {1});
  job.heap_bytes = static_cast<Size>(2 * run.make(most, job.pes)->bytes_per_pe()) + (Size{1} << 30);
  return job;
}

/// Calls `show` with the result of each size.
void measure_sizes(const GpuJob& job, const LayerRun& run, const std::vector<Size>& sizes,
                   const std::function<void(Size, const Result&)>& show) {
  for (const Size size : sizes)
    run_worlds(job, [&](World& world, Shared& shared, NcclPeer*) {
      if (run.on_world && world.pe() == 0) run.on_world(world);
      const auto call = run.make(size, job.pes);
      call->begin(world);
      Stream stream = world.make_stream("measured");
      TimedCalls timed(
          stream, [&] { call->call(stream); }, job.method.calls, job.method.graph);
      std::vector<double> us;
      for (int round = -job.method.warmups; round < job.method.rounds.value_or(kRounds); ++round) {
        world.barrier();
        const double one = timed.run();
        if (round >= 0) us.push_back(one);
      }
      Check own;
      call->verify(world, own);
      const double slowest = shared.largest(median(us));
      Check check = shared.over_all(own);
      if (world.pe() != 0) return;
      Result result = run.describe(size);
      result.backend = "cuda";
      result.machine = job.machine();
      result.pes = job.pes;
      result.algorithm = call->algorithm();
      if (run.explain) result.options = call->choices();
      result.seed = job.method.seed;
      result.check = check;
      result.time_us = slowest;
      show(size, result);
    });
}

nlohmann::ordered_json to_row(const GpuJob& job, const Result& result) {
  return {{"op", result.op},
          {"predicted", false},
          {"shape", *result.shape},
          {"pes", job.pes},
          {"dtype", result.dtype},
          {"algorithm", result.algorithm},
          {"extras", result.extras},
          {"graph", job.method.graph},
          {"by", job.by_processes ? "processes" : "threads"},
          {"tandem_us", std::round(result.time_us * 1000) / 1000},
          {"checked", result.check->checked},
          {"wrong", result.check->wrong}};
}

}  // namespace

bool names_layers(const std::vector<std::string>& subjects) {
  std::size_t layers = 0;
  for (const std::string& text : subjects) layers += std::holds_alternative<LayerSubject>(parse_subject(text)) ? 1 : 0;
  if (layers != 0 && layers != subjects.size())
    throw InvalidArgument("OP: calls of a layer and others given, allowed on GPUs are either in one run");
  return layers != 0;
}

int run_layer_on_gpus(const RunOptions& a) {
  if (Pictures(a).wanted())
    throw Unsupported(fmt::format("--trace, --report, --svg: on GPUs the tool records collectives, not {}", a.subject));
  const LayerRun run = make_layer_run(std::get<LayerSubject>(parse_subject(a.subject)), a);
  const GpuJob job = make_layer_job(a, run, run.size);
  int code = kRight;
  measure_sizes(job, run, {run.size}, [&](Size, const Result& result) {
    nlohmann::ordered_json json = to_json(result);
    json.update(to_row(job, result));
    write_json(a, json);
    if (!a.json_to_stdout()) std::cout << to_table(result);
    if (!result.check->correct()) code = kWrong;
  });
  return code;
}

int bench_layers_on_gpus(const BenchOptions& a) {
  nlohmann::ordered_json json;
  Size wrong = 0;
  bool speaks = true;
  const auto print = [&](const std::string& text) {
    if (a.json_to_stdout() || !speaks) return;
    fmt::print("{}\n", text);
    std::fflush(stdout);
  };
  for (const std::string& subject : a.subjects) {
    BenchOptions one = a;
    one.subject = subject;
    const LayerRun run = std::get<LayerSubject>(parse_subject(subject)).make(one);
    const std::vector<Size> sizes = layer_sizes(a);
    const GpuJob job = make_layer_job(a, run, sizes.back());
    speaks = job.speaks;
    if (json.empty()) json = result_head(job, a);
    print(fmt::format("# {}, {} PEs on {}{}\n{}", subject, job.pes, job.machine(), job.method.graph ? ", graph" : "",
                      layer_header(run)));
    measure_sizes(job, run, sizes, [&](Size size, const Result& result) {
      print(layer_row(size, result));
      json["rows"].push_back(to_row(job, result));
      wrong += result.check->wrong;
    });
  }
  if (!speaks) return kRight;
  print(fmt::format("# wrong elements: {} {}", wrong, wrong == 0 ? "OK" : "FAILED"));
  write_json(a, json);
  return wrong == 0 ? kRight : kWrong;
}

void layer_tune_on_gpus(const TuneOptions& a, const LayerRun& run, const std::vector<Size>& sizes,
                        const std::function<void(Size, const Result&)>& show) {
  measure_sizes(make_layer_job(a, run, sizes.back()), run, sizes, show);
}

}  // namespace tandem::cli
