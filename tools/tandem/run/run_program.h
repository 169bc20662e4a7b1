#pragma once
/// Runs a program of one operation on all PEs, and completes its result. A program has `bytes_per_pe`, `algorithm`,
/// `choices`, `measurement` and `check`, and is called once on each PE.

#include <string>
#include <utility>

#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// Runs it in the simulator. `what` is the text of the progress bar; `explain` adds the choice of every option.
template <class Program>
Result simulate(Program& program, Result result, const std::string& what, bool explain, Setup setup, Pictures& pictures,
                Progress& progress) {
  reserve_memory(setup, program.bytes_per_pe());
  setup.options.record = pictures.wanted();
  Simulation simulation(setup.machine, setup.pes, setup.options);
  progress.begin(what);
  simulation.run([&](World& world) { program(world); });

  result.machine = setup.machine.name;
  result.assumption = assumption_of(setup);
  result.algorithm = program.algorithm();
  if (explain) result.options = program.choices();
  result.seed = setup.options.seed;
  result.phantom = setup.options.phantom;
  if (!result.phantom) result.check = program.check();
  result.time_us = program.measurement().mean_us();
  result.trace_hash = simulation.trace_hash();
  pictures.compare_with(setup.machine);
  if (pictures.wanted()) pictures.add(result.algorithm, simulation.timeline(), program.measurement().last());
  return result;
}

/// Runs it on CPUs, where each PE calls `make` for a program of its own. The time is the slowest PE's.
template <class Make>
Result run_on_host(const HostJob& job, Result result, double bytes_per_pe, bool explain, const Make& make) {
  CallWindow window;
  int nodes = 1;
  const auto run_one = [&](World& world, Shared& shared) {
    auto program = make();
    program(world);
    const double us = shared.largest(program.measurement().mean_us());
    const Check check = shared.over_all(program.check());
    const CallWindow last = shared.over_all(program.measurement().last());
    if (!job.keeps_result_of(world.pe())) return;
    if (explain) result.options = program.choices();
    result.algorithm = program.algorithm();
    result.time_us = us;
    nodes = world.team().nodes();
    result.check = check;
    result.check->expectation = program.check().expectation;
    window = last;
  };
  job.run(bytes_per_pe, run_one, job.to_pictures(result, window));
  job.describe(result, nodes);
  return result;
}

}  // namespace tandem::cli
