// all_reduce_norm in C.
#include "layer/layer_plans.h"
#include "layer/norm_plan.h"

static_assert(TANDEM_NO_NORM == static_cast<int>(tandem::Norm::kNone) &&
              TANDEM_LAYER_NORM == static_cast<int>(tandem::Norm::kLayer));
static_assert(TANDEM_NOT_QUANTISED == static_cast<int>(tandem::Quantisation::kNone) &&
              TANDEM_SCALE_PER_128 == static_cast<int>(tandem::Quantisation::kGroup));

struct tandem_norm_plan : tandem::c::LayerPlan<tandem::c::NormPlan> {
  static constexpr const char* kType = "tandem_norm_plan";
};

namespace {

using tandem::Size;
using tandem::c::given;
using tandem::c::one_of;
using tandem::c::plans_of;
using tandem::c::size_of_c;

tandem::AllReduceNormOptions options_of(const tandem_norm_problem& problem) {
  using tandem::c::flag;
  tandem::AllReduceNormOptions options;
  options.type = tandem::c::type_of(problem.type);
  options.hidden = size_of_c(problem.hidden, "hidden");
  options.max_rows = size_of_c(problem.max_rows, "max_rows");
  options.norm =
      static_cast<tandem::Norm>(one_of(problem.norm, TANDEM_NO_NORM, TANDEM_LAYER_NORM, "norm", "tandem_norm"));
  if (problem.epsilon != 0) options.epsilon = problem.epsilon;
  options.residual = flag(problem.residual, "residual");
  options.bias = flag(problem.bias, "bias");
  options.norm_bias = flag(problem.norm_bias, "norm_bias");
  options.sum = flag(problem.sum, "sum");
  options.sharded_residual = flag(problem.sharded_residual, "sharded_residual");
  options.quantisation = static_cast<tandem::Quantisation>(
      one_of(problem.quantisation, TANDEM_NOT_QUANTISED, TANDEM_SCALE_PER_128, "quantisation", "tandem_quantisation"));
  if (problem.scale != 0 || options.quantisation == tandem::Quantisation::kStatic) options.scale = problem.scale;
  return options;
}

}  // namespace

tandem_status tandem_norm_plan_create(tandem_norm_plan** plan, tandem_world* world,
                                      const tandem_norm_problem* problem) {
  return plans_of<tandem_norm_plan>().create(plan, world, [&](tandem::World& on, bool any_memory) {
    const tandem::AllReduceNormOptions options = options_of(given(problem, "problem"));
    return std::make_unique<tandem::c::NormPlan>(on, options,
                                                 tandem::c::flag(problem->any_memory, "any_memory") || any_memory);
  });
}

tandem_status tandem_norm_plan_run(tandem_norm_plan* plan, const tandem_norm_run* run, void* stream) {
  return plans_of<tandem_norm_plan>().run(plan, stream, [&](tandem::c::CWorld& world, const auto&) {
    const tandem_norm_run& r = given(run, "run");
    return tandem::AllReduceNormCall{.rows = size_of_c(r.rows, "rows"),
                                     .in = world.handle_of(r.in),
                                     .residual = r.residual,
                                     .weight = r.weight,
                                     .bias = r.bias,
                                     .norm_bias = r.norm_bias,
                                     .out = world.handle_of(r.out),
                                     .sum = world.handle_of(r.sum),
                                     .scales = world.handle_of(r.scales).as<float>()};
  });
}

tandem_status tandem_norm_plan_destroy(tandem_norm_plan* plan) { return plans_of<tandem_norm_plan>().destroy(plan); }
