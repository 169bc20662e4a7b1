// `tandem run`.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/tandem/host/commands.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/run/job_place.h"
#include "tools/tandem/run/run_collective.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {
namespace {

Result run_subject(const Subject& subject, const RunOptions& a, Pictures& pictures) {
  const Setup setup = make_setup(a);
  if (const auto* const op = std::get_if<Operator>(&subject)) {
    const OperatorRun operator_run = make_operator_run(*op, a);
    Progress progress(parts_of(operator_run));
    return run_operator(operator_run, setup, pictures, progress);
  }
  if (const auto* const layer = std::get_if<LayerSubject>(&subject)) {
    const LayerRun run = make_layer_run(*layer, a);
    Progress progress(parts_of(run));
    return run_layer(run, run.size, setup, pictures, progress);
  }
  const CollectiveRun collective_run = make_collective_run(std::get<Collective>(subject), a, setup.pes);
  const Size bytes = bytes_of(a);
  check_size(collective_run, bytes, setup.pes);
  note_cost(collective_run, setup);
  Progress progress(parts_of(collective_run));
  return run_collective(collective_run, setup, bytes, pictures, progress);
}

}  // namespace

int execute(const RunOptions& arguments) {
  const Subject subject = parse_subject(arguments.subject);
  check_peer(subject, arguments);
  check_json_file(arguments, {arguments.trace, arguments.report, arguments.svg});
  if (arguments.on_gpus()) return run_on_gpus(arguments);
  if (arguments.on_host()) return run_on_host(arguments);
  note_simulations_of_a_job();
  Pictures pictures(arguments);
  const Result result = run_subject(subject, arguments, pictures);
  const auto written = pictures.write(result);
  write_json(arguments, to_json(result));
  if (!arguments.json_to_stdout()) {
    std::cout << to_table(result);
    for (const std::string& path : written) std::cout << "wrote " << path << '\n';
  }
  return result.check && !result.check->correct() ? kWrong : kRight;
}

}  // namespace tandem::cli
