#include <fmt/format.h>

#include <variant>

#include "calls.h"
#include "tandem/error.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/run/cost.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/run_collective.h"
#include "tools/tandem/run/run_operator.h"
#include "trace/timeline/path_parts.h"

namespace tandem::python {
namespace {

/// Runs without data refuse wrong scales, too.
void check_scales(const std::vector<double>& scales, const cli::CollectiveRun& run, int pes) {
  if (scales.empty()) return;
  if (run.options.op != ReduceOp::kPremulSum)
    throw InvalidArgument(fmt::format("scales: given with op '{}', allowed with premul_sum", name(run.options.op)));
  if (scales.size() != static_cast<std::size_t>(pes))
    throw InvalidArgument(fmt::format("scales: {} given, allowed are {}, one for each PE", scales.size(), pes));
}

cli::Result run_collective(Collective collective, const Request& request, cli::Setup setup, Arrays in, Arrays out,
                           cli::Pictures& pictures) {
  const cli::CollectiveRun run = cli::make_collective_run(collective, request.arguments, setup.pes);
  check_scales(request.scales, run, setup.pes);
  const Size element = size_of(run.options.type);
  const Size bytes = request.has_count ? cli::bytes_of_count(collective, request.count, setup.pes, element)
                                       : cli::parse_size("bytes", request.arguments.bytes.value_or("1M"));
  cli::cost_note(collective, setup.pes, cli::parts_of(run), cli::computer_memory());
  auto progress = cli::Progress::silent();
  if (setup.options.phantom) return cli::run_collective(run, setup, bytes, pictures, progress);
  const cli::CollectiveCall call{.collective = collective,
                                 .type = run.options.type,
                                 .op = run.options.op,
                                 .count = cli::count_of_bytes(collective, bytes, setup.pes, element),
                                 .pes = setup.pes,
                                 .root = run.options.root};
  const GivenCollectiveData data(call, in, out, request.scales);
  return cli::run_collective(run, setup, bytes, pictures, progress, &data);
}

cli::Result run_operator(Operator op, const Request& request, const cli::Setup& setup, Arrays in, Arrays out,
                         cli::Pictures& pictures) {
  const cli::OperatorRun run = cli::make_operator_run(op, request.arguments);
  auto progress = cli::Progress::silent();
  if (setup.options.phantom) return cli::run_operator(run, setup, pictures, progress);
  const GivenMatrices data(run, setup.pes, in, out);
  return cli::run_operator(run, setup, pictures, progress, &data);
}

Json critical_path(const cli::Pictures& pictures) {
  Json shares = Json::array();
  if (pictures.timelines().empty()) return shares;
  const trace::Timeline& timeline = pictures.timelines().front();
  for (const auto& share : trace::path_shares(timeline, trace::path_parts(timeline, trace::critical_path(timeline))))
    shares.push_back({{"name", share.name}, {"us", static_cast<double>(share.time) / trace::kMicrosecond}});
  return shares;
}

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json pes(const Json& json) { return {{"pes", cli::make_setup(parse_run(json).arguments).pes}}; }

Json run(const Json& json, Arrays in, Arrays out) {
  Request request = parse_run(json);
  request.arguments.phantom = in.empty() && out.empty();
  const cli::Subject subject = cli::parse_subject(request.arguments.subject);
  cli::Pictures pictures(request.arguments);
  if (request.critical_path) pictures.keep();
  const cli::Setup setup = cli::make_setup(request.arguments);
  cli::Result result;
  if (const auto* const op = std::get_if<Operator>(&subject))
    result = run_operator(*op, request, setup, in, out, pictures);
  else
    result = run_collective(std::get<Collective>(subject), request, setup, in, out, pictures);
  result.check.reset();  // the caller has the elements
  Json answer = cli::to_json(result);
  answer["count"] = value_or_null(result.count);
  answer["algorithm_gbps"] = value_or_null(result.algorithm_bandwidth());
  answer["bus_gbps"] = value_or_null(result.bus_bandwidth());
  if (request.critical_path) answer["critical_path"] = critical_path(pictures);
  pictures.write(result);
  return answer;
}

}  // namespace tandem::python
