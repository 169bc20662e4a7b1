#include "operators/experts/dispatch_gemm.h"

#include <algorithm>

#include "collectives/experts/plan.h"
#include "collectives/plan/plan.h"
#include "operators/steps/steps.h"

namespace tandem::ops {

namespace {

ProductShape shape_of(const ExpertGemmOptions& o, const ExpertPlan& experts) {
  const Size n = o.intermediate * (is_gated(o.activation) ? 2 : 1);
  return {experts.rows(), n, o.experts.hidden, o.activation, product_type(o)};
}

ProductBuffers buffers_of(const DispatchGemmCall& call) {
  return {call.rows, call.b, call.out, call.row_scales, call.b_scales, call.out_scales};
}

}  // namespace

DispatchGemm::DispatchGemm(World& world, const ExpertGemmOptions& options, ExpertPlan& experts,
                           const EarlyExperts& early)
    : options_(options),
      experts_(experts),
      team_(world.team()),
      sms_(world.machine().gpu.sm_count),
      early_(options.dispatch_gemm == ExpertForm::kOverlapped ? early : EarlyExperts{}) {
  const ProductShape shape = shape_of(options_, experts);
  const int here = experts_of_pe(options_.experts, team_.size);
  if (early_.count() < here) product_.emplace(world, options_, shape, early_.count(), here - early_.count());
  if (options_.dispatch_gemm == ExpertForm::kSequential) return;
  early_product_.emplace(world, options_, shape, 0, early_.count(), early_.experts_of_wave);
  set_overlapped(world);
}

void DispatchGemm::set_overlapped(World& world) {
  grid_ = {options_.communication_sms, DispatchWaves::kThreads};
  world.check_launch<DispatchWaves>(grid_);
  kernels::PlanSetup setup(world, team_, "dispatch_gemm", grid_.blocks * kWaveRoles, options_.experts.max_tokens);
  const Size row = options_.experts.hidden * size_of(options_.experts.type);
  const kernels::Routing shape = kernels::routing_shape(options_.experts, team_.size);
  static_cast<kernels::RowChunks&>(waves_.rows) = kernels::RowChunks::of(setup, shape, row, 0, 0);
  waves_.out.row_bytes = row;
  const bool all_early = early_.count() >= shape.experts_here;
  waves_.waves = early_.waves + (all_early ? 0 : 1);
  waves_.experts_of_wave = early_.experts_of_wave;
  waves_.placed = world.heap().signals(waves_.waves, "dispatch_gemm placed").of(team_);
  calls_ = world.heap().epochs(1, "dispatch_gemm calls");
  rows_.emplace(world.make_stream("rows"));
}

void DispatchGemm::enqueue(Stream& main, const DispatchGemmCall& call, const kernels::Routing& routing) {
  if (options_.dispatch_gemm == ExpertForm::kOverlapped) return enqueue_overlapped(main, call, routing);
  experts_.dispatch(main, {.tokens = call.tokens,
                           .x = call.x,
                           .x_scales = call.x_scales,
                           .routing = call.routing,
                           .out = call.rows,
                           .out_scales = call.row_scales});
  product_->make_panels(main, routing);
  main.gemm(product_->gemm(buffers_of(call)), team_);
}

void DispatchGemm::enqueue_overlapped(Stream& main, const DispatchGemmCall& call, const kernels::Routing& routing) {
  main.launch<NextEpoch>(kOneWarp, {calls_});
  rows_->wait_for(main);
  DispatchWaves::Args args = waves_;
  args.own = static_cast<const std::byte*>(call.x);
  args.out.rows = static_cast<std::byte*>(call.rows);
  args.routing = routing;
  rows_->launch<DispatchWaves>(grid_, args, team_);  // first: nothing promises that streams run side by side
  early_product_->make_panels(main, routing);
  if (product_) product_->make_panels(main, routing);
  Gemm gemm = early_product_->gemm(buffers_of(call));
  gemm.sms = std::max(1, sms_ - options_.communication_sms);
  gemm.gate = {waves_.placed.local(), calls_.words, grid_.blocks * kWaveRoles};
  main.gemm(gemm, team_);
  main.wait_for(*rows_);
  if (product_) main.gemm(product_->gemm(buffers_of(call)), team_);
}

}  // namespace tandem::ops
