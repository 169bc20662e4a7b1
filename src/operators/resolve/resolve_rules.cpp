/// The last source of options: rules, which have a value for each of them.

#include <fmt/format.h>

#include <mutex>

#include "base/log.h"
#include "operators/resolve/operator_names.h"
#include "operators/resolve/resolver.h"
#include "tandem/error.h"

namespace tandem::ops {

void Resolver::take_rules() {
  const OptionSource rule = OptionSource::kRule;
  offer(Choosable::kReduction, &OperatorOptions::reduction, suitable_reduction(place_, op_), rule,
        "a chain for gemm_all_reduce of two PEs, else the owner");
  if (op_ == Operator::kGemmAllReduce && !one_node() && is_open(Choosable::kSplits))
    offer(Choosable::kForm, &OperatorOptions::form, Form::kSequential, rule,
          "between nodes, collectives in chunks take longer than one");
  if (is_open(Choosable::kSplits))
    offer(Choosable::kSplits, &OperatorOptions::splits, suitable_splits(place_, op_, o_), rule,
          "by waves of tiles and the fabric");
  if (is_open(Choosable::kTransport))
    offer(Choosable::kTransport, &OperatorOptions::copy_by, suitable_mover(place_, op_, o_), rule,
          "by the bytes of a shard, the fabric and the number of PEs");
  if (is_open(Choosable::kCommunicationSms))
    offer(Choosable::kCommunicationSms, &OperatorOptions::communication_sms,
          suitable_communication_sms(place_, op_, o_), rule, "what the transport and the reduction need");
  take_order();
}

void Resolver::take_order() {
  if (!is_open(Choosable::kOrder)) {
    order_ = parse_order(op_, o_.order);
    return;
  }
  const bool ring = o_.reduction == Reduction::kChain && (is_open(Choosable::kForm) || o_.form == Form::kOverlapped);
  order_ = ring ? TileOrder::kPeersFirst : default_order(op_, world_);
  origins_.set(Choosable::kOrder, OptionSource::kRule, "by the fabric, the nodes and the reduction");
}

void Resolver::take_form() {
  if (!is_open(Choosable::kForm) || !has_gemm_with_signals()) return;
  if (place_.team.size == 1)
    return offer(Choosable::kForm, &OperatorOptions::form, Form::kSequential, OptionSource::kRule,
                 "one PE has nothing to overlap");
  result_.sequential_rows = sequential_rows(place_, op_, o_);
  const bool all_rows = op_ != Operator::kGemmAllReduce && result_.sequential_rows >= o_.m;
  offer(Choosable::kForm, &OperatorOptions::form, all_rows ? Form::kSequential : Form::kOverlapped, OptionSource::kRule,
        place_.on_gpus ? "by measured costs of both forms" : "by predicted times of both forms");
  if (!all_rows) return;
  result_.sequential_rows = 0;
  if (!has_sequential_transport()) return;
  choose_sequential_transport(place_, op_, o_);
  for (const Choosable option : {Choosable::kTransport, Choosable::kSplits, Choosable::kCommunicationSms})
    origins_.set(option, OptionSource::kTable, "transport of the sequential form on GPUs");
}

bool Resolver::has_gemm_with_signals() {
  static std::once_flag warned;
  try {
    check_tile(world_, o_);
    return true;
  } catch (const Unsupported& error) {
    // Only the GEMM with signals gates columns.
    if (origins_.is_from(Choosable::kTile, OptionSource::kCaller) || is_gated(o_.activation)) throw;
    offer(Choosable::kForm, &OperatorOptions::form, Form::kSequential, OptionSource::kRule, error.what());
    if (world_.pe() == 0)
      std::call_once(warned, [&] {
        log_line(LogLevel::kWarn, [&] {
          return fmt::format("{}: the sequential form runs on {}: {}", name(op_), world_.machine().name, error.what());
        });
      });
    return false;
  }
}

void Resolver::take_defaults() {
  for (const Choosable option :
       {Choosable::kDirection, Choosable::kShots, Choosable::kTile, Choosable::kPanelGroup, Choosable::kOutType})
    if (is_open(option)) origins_.set(option, OptionSource::kRule, "default");
}

}  // namespace tandem::ops
