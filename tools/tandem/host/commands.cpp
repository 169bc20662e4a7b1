#include "tools/tandem/host/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/processors.h"
#include "tandem/error.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/run_collective.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {

namespace {

constexpr int kTuneCalls = 5;
Result run_subject(const Subject& subject, const RunOptions& a, const HostJob& job) {
  if (const auto* const op = std::get_if<Operator>(&subject))
    return run_operator_on_host(make_operator_run(*op, a), job);
  if (const auto* const layer = std::get_if<LayerSubject>(&subject)) {
    const LayerRun run = make_layer_run(*layer, a);
    return run_layer_on_host(run, run.size, job);
  }
  const CollectiveRun run = make_collective_run(std::get<Collective>(subject), a, job.pes);
  check_size(run, bytes_of(a), job.pes);
  return run_collective_on_host(run, job, bytes_of(a));
}

/// Mean of some calls, of the slowest PE.
double time_of(World& world, Stream& stream, const std::function<void()>& call, int calls) {
  Shared shared(world);
  call();
  stream.synchronize();
  world.barrier();
  const double begin = world.time_us();
  for (int i = 0; i < calls; ++i) call();
  stream.synchronize();
  return shared.largest((world.time_us() - begin) / calls);
}

/// The candidates of a size that run here, and their times.
std::vector<tune::Measured> measure(const CollectiveRun& asked, const HostJob& job, Size bytes,
                                    const std::vector<tune::Candidate>& candidates) {
  std::vector<tune::Measured> all;
  CollectiveRun run = asked;
  for (const tune::Candidate& candidate : candidates) {
    run.options.algorithm = candidate.algorithm;
    run.options.blocks = candidate.blocks;
    try {
      const Result result = run_collective_on_host(run, job, bytes);
      if (!result.check->correct())
        throw CheckFailed(fmt::format("{} {} of {} bytes: {} wrong elements", result.op, result.algorithm, bytes,
                                      result.check->wrong));
      all.push_back({bytes, candidate.algorithm, candidate.blocks, result.time_us});
    } catch (const Unsupported&) {  // no multicast, a grid that does not fit
    }
  }
  return all;
}

}  // namespace

int most_tuned_blocks(int pes) { return std::max(4, 2 * (host::processors() / pes)); }

int run_on_host(const RunOptions& a) {
  HostJob job = make_host_job(a);
  Pictures pictures(a);
  job.pictures = &pictures;
  const Result result = run_subject(parse_subject(a.subject), a, job);
  if (job.speaks) {
    const std::vector<std::string> written = pictures.write(result);
    write_json(a, to_json(result));
    if (!a.json_to_stdout()) {
      std::cout << to_table(result);
      for (const std::string& path : written) std::cout << "wrote " << path << '\n';
    }
  }
  return result.check && !result.check->correct() ? kWrong : kRight;
}

std::vector<Sweep> tune_on_host(const TuneOptions& a) {
  const HostJob job = make_host_job(a);
  std::vector<Sweep> sweeps;
  for (const std::string& subject : a.subjects) {
    TuneOptions one = a;
    one.subject = subject;
    CollectiveRun run = make_collective_run(std::get<Collective>(parse_subject(subject)), one, job.pes);
    run.iterations = a.iterations.value_or(kTuneCalls);
    Sweep sweep;
    job.run(0, [&](World& world, Shared&) {
      if (job.keeps_result_of(world.pe()))
        sweep.machine = world.machine().name, sweep.processor = world.machine().processor;
    });
    sweep.group.pes = job.pes;
    sweep.group.source = sweep_source(a.command_line, HostJob::machine());
    std::vector<tune::Candidate> candidates = tune::candidates(run.collective, true, a.algorithm.value_or(""));
    std::erase_if(candidates,
                  [&](const tune::Candidate& candidate) { return candidate.blocks > most_tuned_blocks(job.pes); });
    tune::Contest contest(candidates);
    for (const Size bytes : bench_sizes(a)) {
      const std::vector<tune::Measured> all = measure(run, job, bytes, contest.at(bytes));
      contest.add(bytes, all);
      if (job.speaks) print_sweep_line(a, name(run.collective), bytes, all);
    }
    sweep.measured = contest.measured();
    sweeps.push_back(std::move(sweep));
  }
  if (!job.speaks) sweeps.clear();
  return sweeps;
}

OperatorTuneSetup operator_tune_on_host(const TuneOptions& a, const OperatorRun& run) {
  const HostJob job = make_host_job(a);
  OperatorTuneSetup tune;
  tune.speaks = job.speaks;
  tune.setup.in_world = [job, bytes = bytes_per_pe(run, job.pes)](const std::function<void(World&)>& program) {
    job.run(bytes, [&](World& world, Shared&) { program(world); });
  };
  const int calls = a.iterations.value_or(kTuneCalls);
  tune.setup.time = [calls](World& world, Stream& stream, const std::function<void()>& call) {
    return time_of(world, stream, call, calls);
  };
  return tune;
}

}  // namespace tandem::cli
