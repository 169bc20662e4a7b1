#include "operators/resolve/resolved_choices.h"

#include <fmt/format.h>

#include "operators/resolve/operator_names.h"
#include "operators/resolve/resolve.h"
#include "tune/operator_names.h"

namespace tandem::ops {

std::vector<OptionChoice> describe_choices(Operator op, const ResolvedOptions& resolved, const Origins& origins) {
  const OperatorOptions& o = resolved.options;
  const bool all_reduce = op == Operator::kGemmAllReduce;
  std::vector<OptionChoice> choices;
  const auto add = [&](const char* option, Choosable choosable, const std::string& value) {
    const Origins::Origin& origin = *origins.of(choosable);
    choices.push_back({option, value, origin.source, origin.reason});
  };
  add("form", Choosable::kForm, name(o.form));
  add("transport", Choosable::kTransport, tune::name(o.copy_by));
  add("direction", Choosable::kDirection, tune::name(o.direction));
  if (op != Operator::kAllGatherGemm) add("reduction", Choosable::kReduction, tune::name(o.reduction));
  if (all_reduce) add("shots", Choosable::kShots, o.shots == 0 ? "by the rows of a run" : std::to_string(o.shots));
  add("splits", Choosable::kSplits, std::to_string(o.splits));
  add("order", Choosable::kOrder, order_name(op, resolved.order));
  add("tile", Choosable::kTile, fmt::format("{}x{}", o.tile_m, o.tile_n));
  add("panel_group", Choosable::kPanelGroup, std::to_string(o.panel_group));
  add("communication_sms", Choosable::kCommunicationSms, std::to_string(o.communication_sms));
  add("out_dtype", Choosable::kOutType, name(o.result_type()));
  const auto add_rule = [&](const char* option, const std::string& value, const char* reason) {
    choices.push_back({option, value, OptionSource::kRule, reason});
  };
  const auto add_rows = [&](const char* option, Size rows, const char* reason) {
    add_rule(option, std::to_string(rows), reason);
  };
  if (all_reduce) {
    add_rows("few_rows", resolved.all_reduce.few, "rows up to which the GEMM's blocks add up what they computed");
    add_rows("packet_rows", resolved.all_reduce.packets, "rows up to which packets follow a whole GEMM");
    add_rows("one_shot_rows", resolved.all_reduce.one_shot, "rows up to which every PE adds up everything");
  }
  if (resolved.all_reduce.collective_one_shot > 0)
    add_rule("collective_one_shot",
             fmt::format("{} to {}", resolved.all_reduce.collective_above + 1, resolved.all_reduce.collective_one_shot),
             "rows of a sequential plan whose collective takes one shot");
  if (resolved.sequential_rows > 0) {
    add_rows("sequential_rows", resolved.sequential_rows, "rows up to which the sequential form is the faster one");
    add_rule("sequential_transport", tune::name(resolved.sequential.copy_by), "of runs in the sequential form");
  }
  if (resolved.narrow_rows > 0)
    add_rows("narrow_rows", resolved.narrow_rows, "rows up to which sequential runs take tiles of 128 columns");
  if (resolved.double_buffered)
    add_rule("double_buffered", "yes", "on GPUs within a node of several PEs");
  else
    add_rule("double_buffered", "no", "only on GPUs within a node of several PEs");
  return choices;
}

}  // namespace tandem::ops
