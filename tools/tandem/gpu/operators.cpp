// `tandem run` and `tandem bench` of operators on GPUs.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "tools/tandem/gpu/job.h"
#include "tools/tandem/gpu/measure/operator_benchmark.h"
#include "tools/tandem/gpu/operators.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {

namespace {

double rounded(double us) { return std::round(us * 1000) / 1000; }

/// A run of an operator with one or more numbers of rows.
struct OperatorJob {
  OperatorRun run;
  std::vector<Size> rows;
  GpuJob job;
};

template <class Options>
OperatorJob make_job(const Options& a, const std::string& subject) {
  OperatorJob all;
  Options one = a;
  one.subject = subject;
  all.run = make_operator_run(std::get<Operator>(parse_subject(subject)), one);
  all.job = make_gpu_job(a, {}, {1});
  const OperatorOptions& o = all.run.options;
  const bool is_plain = !all.run.bias && !all.run.scales && o.activation == Activation::kNone && !o.norm.any();
  if (a.versus && !is_plain)
    throw InvalidArgument(
        "--vs: given, allowed without --bias, --activation, --scales and --norm: peers have plain products");
  return all;
}

/// Calls `program` once for each number of rows, on every PE.
void measure_rows(const OperatorJob& job, const std::function<void(const GpuOperator&, const OperatorOptions&)>& show) {
  GpuJob sized = job.job;
  sized.heap_bytes = operator_heap(job.run, sized.pes);
  run_worlds(sized, [&](World& world, Shared& shared, NcclPeer* nccl) {
    OperatorBenchmark turns(world, shared, nccl, sized.method, job.run);
    for (const Size m : job.rows) {
      const GpuOperator measured = turns.measure(m);
      if (world.pe() == 0) show(measured, turns.options());
      world.barrier();
    }
  });
}

bool is_selected(const OperatorRun& run) { return run.options.use_tuned && run.options.form == Form::kSuitable; }

/// Describes the plan, and its strategy for these rows.
std::string algorithm(const OperatorJob& job, const GpuOperator& measured, const OperatorOptions& options) {
  const std::string plan = describe(job.run.op, options);
  return measured.strategy == name(options.form) ? plan : fmt::format("{} ({})", measured.strategy, plan);
}

Result to_result(const OperatorJob& job, const GpuOperator& measured, const OperatorOptions& options) {
  Result result;
  result.op = name(job.run.op);
  result.backend = "cuda";
  result.machine = job.job.machine();
  result.pes = job.job.pes;
  result.shape = Shape{measured.m, options.n, options.k}.text();
  result.dtype = name(options.type);
  result.algorithm = algorithm(job, measured, options);
  if (job.run.explain) result.options = measured.choices;
  result.extras = extras_text(job.run);
  result.seed = job.job.method.seed;
  const bool is_part = options.form == Form::kComputeOnly || options.form == Form::kCommunicationOnly;
  if (!is_part) result.check = measured.check;
  result.time_us = measured.us;
  if (measured.sequential_us > 0) result.sequential_us = measured.sequential_us;
  return result;
}

nlohmann::ordered_json to_row(const OperatorJob& job, const GpuOperator& measured, const OperatorOptions& options) {
  nlohmann::ordered_json peers = nlohmann::ordered_json::object();
  for (const auto& [peer, us] : measured.peers) peers[peer] = rounded(us);
  return {{"op", name(job.run.op)},
          {"predicted", false},
          {"m", measured.m},
          {"n", options.n},
          {"k", options.k},
          {"pes", job.job.pes},
          {"dtype", name(options.type)},
          {"algorithm", algorithm(job, measured, options)},
          {"form", name(options.form)},
          {"way", measured.strategy},
          {"extras", extras_text(job.run)},
          {"graph", job.job.method.graph},
          {"by", job.job.by_processes ? "processes" : "threads"},
          {"selected", is_selected(job.run)},
          {"tandem_us", rounded(measured.us)},
          {"spread", rounded(measured.spread)},
          {"sequential_us", measured.sequential_us > 0 ? nlohmann::ordered_json(rounded(measured.sequential_us))
                                                       : nlohmann::ordered_json()},
          {"peers", peers},
          {"checked", measured.check.checked},
          {"wrong", measured.check.wrong}};
}

std::string header(const OperatorJob& job) {
  const std::string extras = extras_text(job.run);
  std::string text =
      fmt::format("# {}{}{}, {} PEs on {}{}\n#{:>8} {:>8} {:>8} {:>6} {:>11} {:>11} {:>7}", name(job.run.op),
                  extras.empty() ? "" : " with ", extras, job.job.pes, job.job.machine(),
                  job.job.method.graph ? ", graph" : "", "M", "N", "K", "type", "time", "sequential", "#wrong");
  if (job.job.nccl) text += fmt::format(" {:>11} {:>11}", "cublas", "nccl+cublas");
  return text + "  (us)  algorithm";
}

std::string line(const OperatorJob& job, const GpuOperator& measured, const OperatorOptions& options) {
  const auto or_none = [](double us) { return us > 0 ? fmt::format("{:.2f}", us) : std::string("N/A"); };
  std::string text =
      fmt::format("{:>9} {:>8} {:>8} {:>6} {:>11.2f} {:>11} {:>7}", measured.m, options.n, options.k,
                  name(options.type), measured.us, or_none(measured.sequential_us), measured.check.wrong);
  if (job.job.nccl)
    for (const char* const peer : {"cublas", "nccl+cublas"}) {
      const auto found = measured.peers.find(peer);
      text += fmt::format(" {:>11}", found == measured.peers.end() ? "N/A" : or_none(found->second));
    }
  return text + "        " + algorithm(job, measured, options);
}

}  // namespace

bool names_operators(const std::vector<std::string>& subjects) {
  std::size_t operators = 0;
  for (const std::string& text : subjects) operators += std::holds_alternative<Operator>(parse_subject(text)) ? 1 : 0;
  if (operators != 0 && operators != subjects.size())
    throw InvalidArgument("OP: collectives and operators given, allowed on GPUs are either in one run");
  return operators != 0;
}

int run_operator_on_gpus(const RunOptions& a) {
  if (Pictures(a).wanted())
    throw Unsupported("--trace, --report, --svg: on GPUs the tool records collectives, not operators");
  OperatorJob job = make_job(a, a.subject);
  if (job.run.options.m < 1) throw InvalidArgument("--m: 0 given, allowed on GPUs is 1 or more");
  job.rows = {job.run.options.m};
  int code = kRight;
  measure_rows(job, [&](const GpuOperator& measured, const OperatorOptions& options) {
    const Result result = to_result(job, measured, options);
    nlohmann::ordered_json json = to_json(result);
    json.update(to_row(job, measured, options));
    write_json(a, json);
    if (!a.json_to_stdout()) {
      std::cout << to_table(result);
      for (const auto& [peer, us] : measured.peers) std::cout << fmt::format("  {:<15}{:.2f} us\n", peer, us);
    }
    if (!measured.check.correct()) code = kWrong;
  });
  return code;
}

int bench_operators_on_gpus(const BenchOptions& a) {
  nlohmann::ordered_json json;
  Size wrong = 0;
  bool speaks = true;
  const auto print = [&](const std::string& text) {
    if (a.json_to_stdout()) return;
    fmt::print("{}\n", text);
    std::fflush(stdout);
  };
  for (const std::string& subject : a.subjects) {
    OperatorJob job = make_job(a, subject);
    job.rows = bench_rows(a, job.run.options.m);
    if (job.rows.front() < 1)
      throw InvalidArgument(fmt::format("-b: {} given, allowed on GPUs is 1 or more", job.rows.front()));
    job.run.options.m = job.rows.back();  // one plan for all
    if (json.empty()) json = result_head(job.job, a);
    speaks = job.job.speaks;
    if (speaks) print(header(job));
    measure_rows(job, [&](const GpuOperator& measured, const OperatorOptions& options) {
      print(line(job, measured, options));
      json["rows"].push_back(to_row(job, measured, options));
      wrong += measured.check.wrong;
    });
  }
  if (!speaks) return kRight;
  print(fmt::format("# wrong elements: {} {}", wrong, wrong == 0 ? "OK" : "FAILED"));
  write_json(a, json);
  return wrong == 0 ? kRight : kWrong;
}

}  // namespace tandem::cli
