// all_reduce_norm in C.
#include "guard.h"
#include "tandem/layer/all_reduce_norm.h"

static_assert(TANDEM_NO_NORM == static_cast<int>(tandem::Norm::kNone) &&
              TANDEM_LAYER_NORM == static_cast<int>(tandem::Norm::kLayer));
static_assert(TANDEM_NOT_QUANTISED == static_cast<int>(tandem::Quantisation::kNone) &&
              TANDEM_SCALE_PER_128 == static_cast<int>(tandem::Quantisation::kGroup));

struct tandem_norm_plan {
  tandem_world& world;
  std::unique_ptr<tandem::c::NormPlan> plan;
};

namespace {

using tandem::Size;
using tandem::c::given;
using tandem::c::guarded;
using tandem::c::one_of;
using tandem::c::size_of_c;

tandem::c::Handles<tandem_norm_plan>& plans() {
  static auto& all = *new tandem::c::Handles<tandem_norm_plan>("tandem_norm_plan");  // never destroyed
  return all;
}

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
  return guarded([&] {
    given(plan, "plan") = nullptr;
    const tandem::c::InWorld where(world);
    const tandem::AllReduceNormOptions options = options_of(given(problem, "problem"));
    auto made = where->make_norm_plan(options, tandem::c::flag(problem->any_memory, "any_memory"));
    *plan = plans().keep(std::unique_ptr<tandem_norm_plan>(new tandem_norm_plan{where.handle(), std::move(made)}));
    ++where.handle().plans;
  });
}

tandem_status tandem_norm_plan_run(tandem_norm_plan* plan, const tandem_norm_run* run, void* stream) {
  return guarded([&] {
    const auto made = plans().at(plan, "plan");
    const tandem::c::InWorld world(&made->world);
    const tandem_norm_run& r = given(run, "run");
    tandem::AllReduceNormCall call{.rows = size_of_c(r.rows, "rows"),
                                   .in = world->handle_of(r.in),
                                   .residual = r.residual,
                                   .weight = r.weight,
                                   .bias = r.bias,
                                   .norm_bias = r.norm_bias,
                                   .out = world->handle_of(r.out),
                                   .sum = world->handle_of(r.sum),
                                   .scales = world->handle_of(r.scales).as<float>()};
    world->in_order(stream, [&](bool) {
      tandem::Stream borrowed = world->borrow_stream(stream);
      made->plan->run(borrowed, call);
    });
  });
}

tandem_status tandem_norm_plan_destroy(tandem_norm_plan* plan) {
  return guarded([&] {
    if (plan == nullptr) return;
    tandem_world& world = plans().at(plan, "plan")->world;
    const auto use = tandem::c::worlds().at(&world, "world");
    const auto current = tandem::c::current_unless_lost(use->world);
    plans().destroy(plan, "plan", [](const tandem_norm_plan&) {});
    --world.plans;
  });
}
