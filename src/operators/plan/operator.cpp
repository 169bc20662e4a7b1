#include "operators/plan/operator.h"

#include "gemm/contract/stream_k.h"
#include "operators/normed/normed_plan.h"
#include "operators/plan/compared_text.h"
#include "operators/plan/double_buffered_plan.h"
#include "operators/plan/one_pe.h"
#include "operators/resolve/operator_check.h"
#include "operators/resolve/resolve.h"
#include "operators/resolve/suitable_form.h"

#include <fmt/format.h>

#include "base/log.h"
#include "runtime/mismatch_detector.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"

namespace tandem {

ops::BufferWords ops::make_buffer_words(World& world) {
  return {world.heap().signals(world.num_pes(), "operator released"), world.heap().epochs(1, "operator acquired")};
}

GemmWorkspace ops::make_gemm_workspace(World& world) {
  const int sms = world.machine().gpu.sm_count;
  return {world.heap().signals(GemmWorkspace::words_for(sms), "partial sums given").local(),
          world.heap().allocate<float>(GemmWorkspace::sums_for(sms), "partial sums").local()};
}

namespace {

// Plans hold each other, as the options ask for it. From outside to inside:
//
//   NormedPlan               a norm of sums, behind the operator
//     SuitableForm           one of two plans, by the rows of a run
//       AllGatherGemm        the sequential form, for few rows
//       DoubleBufferedPlan   two plans in turns, on GPUs within a node
//         AllGatherGemm, AllGatherGemm
//
// OnePe takes the place of all but NormedPlan in a world of one PE.

std::unique_ptr<OperatorPlan> make_plan(World& world, Operator op, ops::Settings settings) {
  settings.begin_share(0);
  const OperatorOptions& o = settings.options;
  const bool all_sequential = op == Operator::kGemmAllReduce && settings.sequential_rows >= o.m;
  // Now rather than in a run, when PEs have begun to wait for each other.
  if (o.form == Form::kOverlapped && !all_sequential) ops::check_tile(world, o);
  switch (op) {
    case Operator::kAllGatherGemm:
      if (o.form != Form::kOverlapped) return ops::make_all_gather_gemm(world, settings);
      return ops::make_double_buffered(world, settings, ops::make_all_gather_gemm);
    case Operator::kGemmReduceScatter:
      if (o.reduction != Reduction::kChain || o.form != Form::kOverlapped)
        return ops::make_gemm_reduce_scatter(world, settings);
      if (!world.team().one_node())
        throw InvalidArgument("reduction: kChain given, between nodes only kOwner is allowed");
      return ops::make_double_buffered(world, settings, ops::make_gemm_reduce_scatter_ring);
    case Operator::kGemmAllReduce:
      return ops::make_gemm_all_reduce(world, settings);
  }
  return nullptr;
}

const void* zeros(World& world, Size bytes) {
  auto* const memory = world.heap().allocate<std::byte>(bytes, "no bias").local();
  world.copy_in(memory, std::vector<std::byte>(static_cast<std::size_t>(bytes)).data(), bytes);
  return memory;
}

/// Where the GEMMs of a plan leave partial sums; none where they never would.
GemmWorkspace gemm_workspace(World& world, Operator op, const OperatorOptions& o) {
  const Size k = op == Operator::kAllGatherGemm ? o.k : ceil_div(o.k, Size{world.num_pes()});
  const bool is_precise_fp8 = size_of(o.type) == 1 && !o.fast_accumulation;
  if (is_precise_fp8 || k < least_stream_k_depth(o.type)) return {};
  return o.memory ? ops::TransportShare(o.memory, 0).workspace(world) : ops::make_gemm_workspace(world);
}

/// One plan for all rows, or one for few, up to `sequential_rows`, and one for many.
std::unique_ptr<OperatorPlan> make_plans(World& world, Operator op, const ops::Settings& settings) {
  const OperatorOptions& o = settings.options;
  // Rows of A that are normed need a place, which the plan of all_gather_gemm has.
  if (world.num_pes() == 1 && !o.norm.any()) {
    if (o.form == Form::kOverlapped) ops::check_tile(world, o);
    return std::make_unique<ops::OnePe>(world, settings);
  }
  if (op == Operator::kGemmAllReduce || settings.sequential_rows == 0) return make_plan(world, op, settings);
  ops::Settings few = settings;
  few.options = settings.sequential;
  few.options.memory = nullptr;  // its buffers are small
  auto for_few = make_plan(world, op, few);
  return std::make_unique<ops::SuitableForm>(o, settings.sequential_rows, std::move(for_few),
                                             make_plan(world, op, settings));
}

}  // namespace

std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options) {
  if (options.memory) ops::TransportShare::require_of(world, *options.memory);
  ops::check(op, options, world);
  MismatchDetector* const calls = world.calls();
  const std::size_t number = calls != nullptr ? calls->add(ops::compared_text(op, options), world.team()) : 0;
  detail::NotedAllocations allocations = world.note_allocations();
  ops::Settings settings(ops::resolve(world, op, options));
  if (op != Operator::kAllGatherGemm)
    settings.no_bias = zeros(world, settings.options.n * size_of(settings.options.result_type()));
  if (world.on_gpus()) settings.workspace = gemm_workspace(world, op, settings.options);
  // all_gather_gemm norms what it multiplies, the others what they have added up.
  const bool norms_sums = op != Operator::kAllGatherGemm && settings.options.norm.any();
  auto plan = make_plans(world, op, norms_sums ? ops::without_norm(settings) : settings);
  if (norms_sums) plan = ops::make_normed(world, op, settings, std::move(plan));
  plan->choices_ = std::move(settings.choices);
  const OperatorOptions& o = plan->options();
  log_line(world.pe() == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&] {
    return fmt::format("{} {}x{}x{} {} on {} PEs: {}", name(op), o.m, o.n, o.k, name(o.type), world.num_pes(),
                       describe(op, o));
  });
  plan->memory_ = allocations.take();
  plan->op_ = op;
  plan->team_ = world.team();
  plan->world_ = world;
  if (world.on_gpus()) plan->alignment_ = 16;  // TMA's
  plan->calls_ = calls;
  plan->number_ = number;
  return plan;
}

std::string OperatorPlan::strategy(Size) const { return name(options_.form); }

void OperatorPlan::run(Stream& main, const OperatorCall& call) {
  ops::check(op_, options_, call);
  if (team_.size > 0 && call.m > 0) {
    ops::check_matrices(op_, options_, team_, call, alignment_);
    ops::check_places(*world_, op_, options_, team_, call);
  }
  const auto run_all = [&] {
    if (call.m > 0) enqueue(main, call);
  };
  if (calls_ != nullptr)
    calls_->note(number_, call.m, run_all);
  else
    run_all();
}

}  // namespace tandem
