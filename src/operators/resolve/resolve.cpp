#include "operators/resolve/resolve.h"

#include <utility>

#include "operators/resolve/resolver.h"

namespace tandem::ops {

void check_tile(const World& world, const OperatorOptions& o) {
  Gemm gemm;
  gemm.type = o.type;
  gemm.out_type = o.result_type();
  gemm.b_layout = o.b_layout;
  gemm.tile_m = o.tile_m;
  gemm.tile_n = o.tile_n;
  gemm.activation = is_gated(o.activation) ? o.activation : Activation::kNone;
  gemm.fast_accumulation = o.fast_accumulation;
  constexpr float kAnyScale = 1;  // calls bring their own
  if (o.block_scales) gemm.scales = {.a = &kAnyScale, .b = &kAnyScale, .blocks = true};
  world.check_gemm(gemm);
}

Resolver::Resolver(World& world, Operator op, const OperatorOptions& given)
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

ResolvedOptions Resolver::resolve() {
  take_callers();
  take_cached();
  limit_tile();
  if (place_.on_gpus) take_measured();
  take_rules();
  take_form();
  take_defaults();
  return result();
}

bool Resolver::has_sequential_transport() const {
  return place_.on_gpus && !origins_.is_from(Choosable::kTransport, OptionSource::kCaller);
}

ResolvedOptions Resolver::result() {
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

ResolvedOptions resolve(World& world, Operator op, const OperatorOptions& given) {
  return Resolver(world, op, given).resolve();
}

}  // namespace tandem::ops
