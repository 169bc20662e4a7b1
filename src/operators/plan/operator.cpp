#include "operators/plan/operator.h"

#include "gemm/contract/shared_depth.h"
#include "operators/plan/turns.h"
#include "operators/resolve/operator_check.h"
#include "operators/resolve/operator_defaults.h"
#include "operators/resolve/operator_names.h"
#include "operators/resolve/suitable_form.h"
#include "operators/resolve/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "runtime/call_log.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"

namespace tandem {

ops::TurnWords ops::turn_words(World& world) {
  return {world.heap().signals(world.num_pes(), "operator ended"), world.heap().epochs(1, "operator begun")};
}

namespace {

/// The fewest blocks that get 95% of what any number of them gets out of the curve, for each link that a PE drives.
int blocks_to_saturate(const Machine& machine, const Curve& curve, int peers) {
  if (curve.points.empty()) return 8;  // a real GPU's: what fills an NVLink port of eighteen links
  const int links = machine.link.fabric == Fabric::kFullMesh ? std::max(1, peers) : 1;
  int blocks = 1;
  while (blocks < machine.gpu.sm_count && curve.at(blocks) < 0.95 * curve.at(machine.gpu.sm_count)) ++blocks;
  return std::min(blocks * links, machine.gpu.sm_count / 2);
}

int default_communication_sms(Operator op, const OperatorOptions& options, const Machine& machine, const Team& team) {
  const int peers = team.node_size - 1;
  const Curve& curve = options.direction == Direction::kPush ? machine.link.store_gbps : machine.link.load_gbps;
  if (op == Operator::kAllGatherGemm)
    return options.copy_by == CopyBy::kSm ? std::max(1, blocks_to_saturate(machine, curve, peers)) : 0;
  if ((op == Operator::kGemmAllReduce && team.one_node()) || options.reduction == Reduction::kChain) return 0;
  // Between nodes the reduction feeds the NIC while the GEMM runs; on one node all SMs reduce when the GEMM is done.
  return team.one_node() ? 0 : std::min(8, machine.gpu.sm_count / 2);
}

/// Now rather than in a run, when PEs have begun to wait for each other.
void check_tile(const World& world, const OperatorOptions& o) {
  Gemm gemm;
  gemm.type = o.type;
  gemm.out_type = o.result_type();
  gemm.b_layout = o.b_layout;
  gemm.tile_m = o.tile_m;
  gemm.tile_n = o.tile_n;
  world.check_gemm(gemm);
}

std::unique_ptr<OperatorPlan> make_plan(World& world, Operator op, const ops::Settings& settings) {
  const OperatorOptions& o = settings.options;
  const bool all_sequential = op == Operator::kGemmAllReduce && settings.sequential_rows >= o.m;
  if (o.form == Form::kOverlapped && !all_sequential) check_tile(world, o);
  switch (op) {
    case Operator::kAllGatherGemm:
      if (o.form != Form::kOverlapped) return ops::make_all_gather_gemm(world, settings);
      return ops::by_turns(world, settings, ops::make_all_gather_gemm);
    case Operator::kGemmReduceScatter:
      if (o.reduction != Reduction::kChain || o.form != Form::kOverlapped)
        return ops::make_gemm_reduce_scatter(world, settings);
      if (!world.team().one_node())
        throw InvalidArgument("reduction: kChain given, between nodes only kOwner is allowed");
      return ops::by_turns(world, settings, ops::make_gemm_reduce_scatter_chain);
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
  if (size_of(o.type) == 1 || k < kLeastSharedDepth) return {};
  const int sms = world.machine().gpu.sm_count;
  return {world.heap().signals(GemmWorkspace::words_for(sms), "partial sums given").local(),
          world.heap().allocate<float>(GemmWorkspace::sums_for(sms), "partial sums").local()};
}

/// One plan for all rows, or one for few, up to `sequential`, and one for many. `by_sms`: few go by SMs.
std::unique_ptr<OperatorPlan> make_suitable_plan(World& world, Operator op, ops::Settings settings, Size sequential,
                                                 bool by_sms) {
  OperatorOptions& o = settings.options;
  o.form = Form::kOverlapped;
  if (op == Operator::kGemmAllReduce) {
    settings.sequential_rows = sequential;
    return make_plan(world, op, settings);
  }
  ops::Settings few = settings;
  few.options.form = Form::kSequential;
  few.options.m = std::min(o.m, sequential);
  if (by_sms) ops::choose_sequential_transport(op, few.options, world.machine().gpu.sm_count);
  few.communication_sms = few.options.communication_sms;
  if (sequential >= o.m) return make_plan(world, op, few);
  if (sequential == 0) return make_plan(world, op, settings);
  auto for_few = make_plan(world, op, few);
  return std::make_unique<ops::SuitableForm>(o, sequential, std::move(for_few), make_plan(world, op, settings));
}

/// Takes the sequential form where the GPU has no GEMM that waits and signals tile by tile; only Hopper has one. Warns
/// once in a process. Tiles that the caller chose are not replaced.
void take_form_of_gpu(const World& world, Operator op, const OperatorOptions& given, OperatorOptions& o) {
  static std::once_flag said;
  try {
    check_tile(world, o);
  } catch (const Unsupported& error) {
    if (given.tile_m != OperatorOptions{}.tile_m || given.tile_n != OperatorOptions{}.tile_n) throw;
    o.form = Form::kSequential;
    if (world.pe() == 0)
      std::call_once(said, [&] {
        log_line(LogLevel::kWarn, [&] {
          return fmt::format("{}: the sequential form runs on {}: {}", name(op), world.machine().name, error.what());
        });
      });
  }
}

std::unique_ptr<OperatorPlan> make_any_plan(World& world, Operator op, const OperatorOptions& options) {
  ops::check(op, options, world);
  const Machine model = ops::planning_model(world.machine());
  const bool measured = world.on_gpus();
  OperatorOptions tuned = ops::tuned_or(world, op, options);
  if (measured && tuned.type == DType::kE4M3) tuned.tile_n = std::min(tuned.tile_n, ops::kMostFp8TileN);
  ops::Settings settings;
  settings.options = ops::complete(op, measured ? ops::with_measured(world, op, tuned) : tuned, model, world.team());
  OperatorOptions& o = settings.options;
  if (o.form == Form::kSuitable) take_form_of_gpu(world, op, options, o);
  settings.order = o.order.empty() ? ops::default_order(op, world) : ops::parse_order(op, o.order);
  if (o.communication_sms < 0) o.communication_sms = default_communication_sms(op, o, model, world.team());
  settings.communication_sms = o.communication_sms;
  if (op != Operator::kAllGatherGemm) settings.no_bias = zeros(world, o.n * size_of(o.result_type()));
  if (measured) settings.workspace = gemm_workspace(world, op, o);
  if (o.form != Form::kSuitable) return make_plan(world, op, settings);
  const Size sequential = ops::sequential_rows(op, o, model, world.team(), measured);
  return make_suitable_plan(world, op, settings, sequential, measured && !tuned.copy_by);
}

}  // namespace

std::unique_ptr<OperatorPlan> make_operator(World& world, Operator op, const OperatorOptions& options) {
  detail::NotedAllocations allocations = world.note_allocations();
  auto plan = make_any_plan(world, op, options);
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
  plan->calls_ = world.calls();
  if (plan->calls_ != nullptr)
    plan->number_ = plan->calls_->add(
        fmt::format("{} {} of at most {} x {} x {}", name(op), name(o.type), o.m, o.n, o.k), world.team());
  return plan;
}

std::string OperatorPlan::way(Size) const { return name(options_.form); }

void OperatorPlan::run(Stream& main, const OperatorCall& call) {
  ops::check(options_, call);
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
