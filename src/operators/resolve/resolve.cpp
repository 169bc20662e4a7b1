#include "operators/resolve/resolve.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "operators/resolve/operator_check.h"
#include "operators/resolve/operator_names.h"
#include "operators/resolve/resolved_choices.h"
#include "operators/resolve/tuned.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"

namespace tandem::ops {

void check_tile(const World& world, const OperatorOptions& o) {
  Gemm gemm;
  gemm.type = o.type;
  gemm.out_type = o.result_type();
  gemm.b_layout = o.b_layout;
  gemm.tile_m = o.tile_m;
  gemm.tile_n = o.tile_n;
  gemm.activation = is_gated(o.activation) ? o.activation : Activation::kNone;
  world.check_gemm(gemm);
}

namespace {

/// A chain pushes, in one order.
bool allows_chain(const OperatorOptions& o) {
  return o.direction == Direction::kPush && (o.order.empty() || o.order == "peers_first");
}

class Resolver {
 public:
  Resolver(World& world, Operator op, const OperatorOptions& given)
      : world_(world),
        op_(op),
        model_(planning_model(world.machine())),
        place_{world.team(),
               model_,
               operator_table(world.machine()),
               world.machine().gpu.sm_count,
               world.on_gpus(),
               world.device() != DeviceKind::kHost},
        o_(given) {}

  ResolvedOptions resolve() {
    take_callers();
    take_cached();
    limit_tile();
    if (place_.on_gpus) take_measured();
    take_rules();
    take_form();
    take_defaults();
    return result();
  }

 private:
  bool is_open(Choosable option) const { return !origins_.of(option); }
  bool one_node() const { return place_.team.one_node(); }

  /// Takes `value` unless an earlier source has chosen this option.
  template <class T, class V>
  void offer(Choosable option, T OperatorOptions::*field, V value, OptionSource source, const std::string& reason) {
    if (!is_open(option)) return;
    o_.*field = value;
    origins_.set(option, source, reason);
  }

  void take_callers() {
    const OperatorOptions open;
    const auto mark = [&](Choosable option, bool is_given) {
      if (is_given) origins_.set(option, OptionSource::kCaller, "");
    };
    mark(Choosable::kForm, o_.form != open.form);
    mark(Choosable::kTransport, o_.copy_by.has_value());
    mark(Choosable::kDirection, o_.direction != open.direction);
    mark(Choosable::kReduction, o_.reduction.has_value());
    mark(Choosable::kShots, o_.shots != open.shots);
    mark(Choosable::kSplits, o_.splits != open.splits);
    mark(Choosable::kOrder, !o_.order.empty());
    mark(Choosable::kTile, o_.tile_m != open.tile_m || o_.tile_n != open.tile_n);
    mark(Choosable::kPanelGroup, o_.panel_group != open.panel_group);
    mark(Choosable::kCommunicationSms, o_.communication_sms >= 0);
    mark(Choosable::kOutType, o_.out_type.has_value());
  }

  /// An entry is taken as a whole; what it leaves open itself goes on to the next source.
  void take_cached() {
    const std::optional<OperatorOptions> tuned = find_agreed(world_, op_, o_);
    if (!tuned) return;
    const std::string file = std::getenv(kOperatorCacheVariable);
    const auto take = [&]<class T>(Choosable option, T OperatorOptions::*field, bool has_value) {
      if (has_value) offer(option, field, (*tuned).*field, OptionSource::kCache, file);
    };
    take(Choosable::kForm, &OperatorOptions::form, true);
    take(Choosable::kTransport, &OperatorOptions::copy_by, tuned->copy_by.has_value());
    take(Choosable::kDirection, &OperatorOptions::direction, true);
    take(Choosable::kReduction, &OperatorOptions::reduction, tuned->reduction.has_value());
    take(Choosable::kShots, &OperatorOptions::shots, tuned->shots > 0);
    take(Choosable::kSplits, &OperatorOptions::splits, tuned->splits > 0);
    take(Choosable::kOrder, &OperatorOptions::order, !tuned->order.empty());
    o_.tile_m = tuned->tile_m;
    take(Choosable::kTile, &OperatorOptions::tile_n, true);
    take(Choosable::kCommunicationSms, &OperatorOptions::communication_sms, tuned->communication_sms >= 0);
  }

  void limit_tile() {
    if (!place_.on_gpus || o_.type != DType::kE4M3 || o_.tile_n <= kMostFp8TileN) return;
    o_.tile_n = kMostFp8TileN;
    origins_.set(Choosable::kTile, OptionSource::kRule, "GPUs have no kernel of fp8 with wider tiles");
  }

  void take_measured() {
    const OptionSource table = OptionSource::kTable;
    const std::string file = fmt::format("operator table {}", place_.table.name);
    const OperatorOptions measured = selected_options(world_, op_, o_.m, o_.n, o_.k, o_.type);
    // Where more was chosen than what to compute, tiles are left alone too.
    const bool tile_is_open = o_.use_tuned && is_open(Choosable::kForm) && is_open(Choosable::kTransport) &&
                              is_open(Choosable::kSplits) && is_open(Choosable::kTile);
    if (!one_node()) offer(Choosable::kForm, &OperatorOptions::form, measured.form, table, file);
    if (measured.reduction && allows_chain(o_))
      offer(Choosable::kReduction, &OperatorOptions::reduction, measured.reduction, table, file);
    if (measured.copy_by) offer(Choosable::kTransport, &OperatorOptions::copy_by, measured.copy_by, table, file);
    if (measured.splits > 0) offer(Choosable::kSplits, &OperatorOptions::splits, measured.splits, table, file);
    const bool is_measured_chain = measured.reduction == Reduction::kChain && o_.reduction == measured.reduction;
    if (is_measured_chain && measured.communication_sms >= 0)
      offer(Choosable::kCommunicationSms, &OperatorOptions::communication_sms, measured.communication_sms, table, file);
    const bool is_plain = o_.ns.empty() && o_.type == DType::kBF16 && o_.result_type() == o_.type &&
                          o_.b_layout == BLayout::kNxK && !is_gated(o_.activation);
    if (!tile_is_open || !is_plain) return;
    const TileChoice tile = measured_tile(place_, op_, o_);
    offer(Choosable::kTile, &OperatorOptions::tile_n, tile.tile_n, table, file);
    offer(Choosable::kPanelGroup, &OperatorOptions::panel_group, tile.panel_group, table, file);
  }

  void take_rules() {
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

  void take_order() {
    if (!is_open(Choosable::kOrder)) {
      order_ = parse_order(op_, o_.order);
      return;
    }
    const bool ring = o_.reduction == Reduction::kChain && (is_open(Choosable::kForm) || o_.form == Form::kOverlapped);
    order_ = ring ? TileOrder::kPeersFirst : default_order(op_, world_);
    origins_.set(Choosable::kOrder, OptionSource::kRule, "by the fabric, the nodes and the reduction");
  }

  /// An open form is overlapped, with the rows up to which the sequential form is the faster one. If these are all rows
  /// of the plan, it is sequential.
  void take_form() {
    if (!is_open(Choosable::kForm) || !has_gemm_with_signals()) return;
    result_.sequential_rows = sequential_rows(place_, op_, o_);
    const bool all_rows = op_ != Operator::kGemmAllReduce && result_.sequential_rows >= o_.m;
    offer(Choosable::kForm, &OperatorOptions::form, all_rows ? Form::kSequential : Form::kOverlapped,
          OptionSource::kRule, place_.on_gpus ? "by measured costs of both forms" : "by predicted times of both forms");
    if (!all_rows) return;
    result_.sequential_rows = 0;
    if (!has_sequential_transport()) return;
    choose_sequential_transport(place_, op_, o_);
    for (const Choosable option : {Choosable::kTransport, Choosable::kSplits, Choosable::kCommunicationSms})
      origins_.set(option, OptionSource::kTable, "transport of the sequential form on GPUs");
  }

  /// Returns whether sequential runs have a transport, chunks and SMs of their own.
  bool has_sequential_transport() const {
    return place_.on_gpus && !origins_.is_from(Choosable::kTransport, OptionSource::kCaller);
  }

  /// Returns whether the GPU has a GEMM that waits and signals tile by tile; only Hopper has one. Else takes the
  /// sequential form and warns once in a process. Tiles that the caller chose are not replaced.
  bool has_gemm_with_signals() {
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
            return fmt::format("{}: the sequential form runs on {}: {}", name(op_), world_.machine().name,
                               error.what());
          });
        });
      return false;
    }
  }

  /// Options whose open value is a value of its own.
  void take_defaults() {
    for (const Choosable option :
         {Choosable::kDirection, Choosable::kShots, Choosable::kTile, Choosable::kPanelGroup, Choosable::kOutType})
      if (is_open(option)) origins_.set(option, OptionSource::kRule, "default");
  }

  ResolvedOptions result() {
    ResolvedOptions& r = result_;
    r.options = o_;
    r.order = order_;
    r.sequential = o_;
    r.sequential.form = Form::kSequential;
    if (op_ == Operator::kGemmAllReduce) {
      r.sequential.copy_by = CopyBy::kSm;  // few rows: copies start later
      r.all_reduce = all_reduce_rows(place_, o_);
    } else {
      r.sequential.m = r.sequential_rows;
      if (has_sequential_transport()) choose_sequential_transport(place_, op_, r.sequential);
    }
    r.double_buffered = place_.on_gpus && one_node() && place_.team.size > 1;
    r.choices = describe_choices(op_, r, origins_);
    return std::move(result_);
  }

  World& world_;
  Operator op_;
  const Machine model_;
  const Place place_;
  OperatorOptions o_;  // as far as they are chosen
  Origins origins_;
  TileOrder order_ = TileOrder::kOwnFirst;
  ResolvedOptions result_;
};

}  // namespace

ResolvedOptions resolve(World& world, Operator op, const OperatorOptions& given) {
  check(op, given, world);
  return Resolver(world, op, given).resolve();
}

}  // namespace tandem::ops
