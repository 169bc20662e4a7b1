/// Plans of all_reduce_norm. A call has up to eight buffers and counts rows, so CollectivePlan::run does not fit it.
/// Signals, staging and the comparison of calls are those of collectives.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "collectives/all_reduce_norm/check.h"
#include "collectives/all_reduce_norm/one_shot_ll.h"
#include "collectives/all_reduce_norm/selection.h"
#include "collectives/all_reduce_norm/two_shot.h"
#include "collectives/plan/plan.h"
#include "runtime/mismatch_detector.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

template <class Kernel, class T, class Q>
class NormPlan final : public AllReduceNormPlan {
 public:
  using Args = typename Kernel::Args;

  NormPlan(World& world, const AllReduceNormOptions& o)
      : AllReduceNormPlan(world, o), team_(world.team()), grid_{o.blocks, o.threads} {
    world.check_launch<Kernel>(grid_);
    PlanSetup setup(world, team_, "all_reduce_norm " + o.algorithm, grid_.blocks, o.max_rows);
    args_.hidden = o.hidden;
    args_.norm = o.norm;
    args_.quantisation = o.quantisation;
    args_.epsilon = static_cast<float>(o.epsilon);
    args_.scale = static_cast<float>(o.scale);
    args_.sharded_residual = o.sharded_residual;
    if (!o.sum) args_.kept = setup.template local<T>(grid_.blocks * o.hidden, "sums");
    Kernel::prepare(setup, args_);
  }

 private:
  void enqueue(Stream& stream, const AllReduceNormCall& call) override {
    Args args = args_;
    args.in = call.in.template as<const T>();
    args.residual = static_cast<const T*>(call.residual);
    args.weight = static_cast<const T*>(call.weight);
    args.bias = static_cast<const T*>(call.bias);
    args.norm_bias = static_cast<const T*>(call.norm_bias);
    args.out = call.out.template as<Q>();
    args.sum = call.sum.template as<T>();
    args.scales = call.scales;
    args.rows = call.rows;
    stream.launch<Kernel>(grid_, args, team_);
  }

  Team team_;
  Grid grid_;
  Args args_{};
};

template <template <class, class> class Kernel>
std::unique_ptr<AllReduceNormPlan> make(World& world, const AllReduceNormOptions& o) {
  const auto of_type = [&]<class T>() -> std::unique_ptr<AllReduceNormPlan> {
    if (o.quantisation == Quantisation::kNone) return std::make_unique<NormPlan<Kernel<T, T>, T, T>>(world, o);
    return std::make_unique<NormPlan<Kernel<T, fp8_e4m3>, T, fp8_e4m3>>(world, o);
  };
  if (o.type == DType::kF32) return of_type.template operator()<float>();
  if (o.type == DType::kF16) return of_type.template operator()<f16>();
  return of_type.template operator()<bf16>();
}

struct Registered {
  AllReduceNormAlgorithm about;
  std::unique_ptr<AllReduceNormPlan> (*make)(World& world, const AllReduceNormOptions& options);
};

const std::vector<Registered>& registered() {
  static const std::vector<Registered> all{
      {{"one_shot_ll", "every PE sums and norms all rows, which come as packets: few rows", false},
       make<AllReduceNormOneShotLL>},
      {{"one_shot_ll128", "the same with lines of packets", false}, make<AllReduceNormOneShotLL128>},
      {{"two_shot", "each row's owner sums it and writes the sums, or else the normed row, to all: many rows", true},
       make<AllReduceNormTwoShot>}};
  return all;
}

const Registered& named(const std::string& algorithm) {
  std::string names;
  for (const Registered& one : registered()) {
    if (one.about.name == algorithm) return one;
    names += (names.empty() ? "" : ", ") + one.about.name;
  }
  throw InvalidArgument(fmt::format("algorithm: all_reduce_norm has no '{}'; it has {}", algorithm, names));
}

/// The text by which PEs compare their plans.
std::string describe(const AllReduceNormOptions& o) {
  return fmt::format(
      "all_reduce_norm {} {} hidden {} norm {} epsilon {} quantisation {} scale {}{}{}{}{}{} in {} blocks "
      "of at most {} rows",
      o.algorithm, name(o.type), o.hidden, name(o.norm), o.epsilon, name(o.quantisation), o.scale,
      o.residual ? " residual" : "", o.bias ? " bias" : "", o.norm_bias ? " norm_bias" : "", o.sum ? " sum" : "",
      o.sharded_residual ? " sharded" : "", o.blocks, o.max_rows);
}

/// Returns the choices that were made, with their sources.
std::vector<OptionChoice> choices_of(const AllReduceNormOptions& asked, const AllReduceNormOptions& complete,
                                     const std::optional<tune::SelectedChoice>& tuned) {
  const std::string table = tuned ? fmt::format("selection table {}: {}", tuned->table, tuned->source) : "";
  OptionChoice algorithm{"algo", complete.algorithm, OptionSource::kCaller, ""};
  if (asked.algorithm.empty()) {
    algorithm.source = tuned ? OptionSource::kTable : OptionSource::kRule;
    algorithm.reason = tuned ? table : "by bytes of the rows, as predicted for one node";
  }
  OptionChoice blocks{"blocks", std::to_string(complete.blocks), OptionSource::kCaller, ""};
  if (asked.blocks == 0) {
    const bool is_tuned = tuned && tuned->blocks > 0;
    blocks.source = is_tuned ? OptionSource::kTable : OptionSource::kRule;
    blocks.reason = is_tuned ? table : "one for each row of a PE, at most one for each SM";
  }
  return {algorithm, blocks};
}

}  // namespace

}  // namespace kernels

const std::vector<AllReduceNormAlgorithm>& all_reduce_norm_algorithms() {
  static const std::vector<AllReduceNormAlgorithm> all = [] {
    std::vector<AllReduceNormAlgorithm> list;
    for (const auto& one : kernels::registered()) list.push_back(one.about);
    return list;
  }();
  return all;
}

AllReduceNormPlan::AllReduceNormPlan(World& world, const AllReduceNormOptions& options)
    : world_(world), options_(options) {}

std::unique_ptr<AllReduceNormPlan> make_all_reduce_norm(World& world, const AllReduceNormOptions& options) {
  using namespace kernels;
  check(options, world.machine());
  const Team team = world.team();
  if (!team.one_node())
    throw Unsupported(fmt::format("all_reduce_norm: needs loads and stores between all PEs, which {} nodes do not have",
                                  team.nodes()));
  AllReduceNormOptions complete = options;
  const std::optional<tune::SelectedChoice> tuned =
      options.algorithm.empty() ? tuned_norm(world, options) : std::nullopt;
  if (options.algorithm.empty())
    complete.algorithm = tuned ? tuned->algorithm : suitable_norm_algorithm(options, team.size);
  const Registered& chosen = named(complete.algorithm);
  if (options.sharded_residual && !chosen.about.two_shots)
    throw Unsupported(
        fmt::format("all_reduce_norm algorithm '{}': cannot norm rows whose residual another PE holds, "
                    "allowed with sharded_residual is two_shot",
                    complete.algorithm));
  const Size rows = chosen.about.two_shots ? ceil_div(options.max_rows, team.size) : options.max_rows;
  if (options.blocks == 0) {
    complete.blocks = static_cast<int>(std::clamp<Size>(rows, 1, world.machine().gpu.sm_count));
    if (tuned && tuned->blocks > 0) complete.blocks = std::min(complete.blocks, tuned->blocks);
  }
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&] { return describe(complete); });
  detail::NotedAllocations allocations = world.note_allocations();
  auto plan = chosen.make(world, complete);
  plan->choices_ = choices_of(options, complete, tuned);
  if (world.calls() != nullptr) plan->number_ = world.calls()->add(describe(complete), team);
  if (world.checks_calls()) {
    PlanSetup setup(world, team, "all_reduce_norm agreement", 1, 0);
    constexpr Size kWordsAndSlots = 4;
    plan->comparison_ = {.what = "all_reduce_norm " + complete.algorithm,
                         .signature = call_signature(describe(complete)),
                         .count = 0,
                         .words = setup.signals(kWordsAndSlots * team.size, "words"),
                         .calls = setup.epochs()};
  }
  plan->memory_ = allocations.take();
  return plan;
}

void AllReduceNormPlan::run(Stream& stream, const AllReduceNormCall& call) {
  kernels::check(options_, world_, call, kernels::named(options_.algorithm).about.two_shots);
  const auto enqueue_all = [&] {
    if (world_.checks_calls()) {
      detail::CallComparison agreement = comparison_;
      agreement.count = call.rows;
      stream.compare_call(agreement, world_.team());
    }
    if (call.rows > 0) enqueue(stream, call);
  };
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(number_, call.rows, enqueue_all);
  else
    enqueue_all();
}

}  // namespace tandem
