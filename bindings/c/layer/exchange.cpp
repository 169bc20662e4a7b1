// exchange_heads in C.
#include "layer/layer_plans.h"
#include "tandem/layer/exchange_heads.h"

struct tandem_exchange_plan : tandem::c::LayerPlan<tandem::ExchangeHeadsPlan> {
  static constexpr const char* kType = "tandem_exchange_plan";
};

namespace {

using tandem::c::given;
using tandem::c::plans_of;
using tandem::c::size_of_c;

tandem::ExchangeHeadsOptions options_of(const tandem_exchange_problem& problem) {
  tandem::ExchangeHeadsOptions options;
  options.type = tandem::c::type_of(problem.type);
  options.max_rows = size_of_c(problem.max_rows, "max_rows");
  given(problem.segments, "segments");
  if (problem.num_tensors > tandem::kExchangedTensors)
    throw tandem::InvalidArgument(
        fmt::format("num_tensors: {} given, allowed are 1 to {}", problem.num_tensors, tandem::kExchangedTensors));
  for (size_t i = 0; i < problem.num_tensors; ++i)
    options.segments.push_back(size_of_c(problem.segments[i], "segments"));
  if (tandem::c::flag(problem.to_rows, "to_rows")) options.direction = tandem::HeadsDirection::kToRows;
  return options;
}

}  // namespace

tandem_status tandem_exchange_plan_create(tandem_exchange_plan** plan, tandem_world* world,
                                          const tandem_exchange_problem* problem) {
  return plans_of<tandem_exchange_plan>().create(plan, world, [&](tandem::World& on, bool) {
    return tandem::make_exchange_heads(on, options_of(given(problem, "problem")));
  });
}

tandem_status tandem_exchange_plan_run(tandem_exchange_plan* plan, const tandem_exchange_run* run, void* stream) {
  return plans_of<tandem_exchange_plan>().run(plan, stream, [&](tandem::c::CWorld& world, const auto& made) {
    const tandem_exchange_run& r = given(run, "run");
    given(r.in, "in");
    given(r.out, "out");
    tandem::ExchangeHeadsCall call{.rows = size_of_c(r.rows, "rows"), .tensors = {}};
    for (size_t i = 0; i < made.options().segments.size(); ++i)
      call.tensors.push_back({r.in[i], world.handle_of(r.out[i])});
    return call;
  });
}

tandem_status tandem_exchange_plan_destroy(tandem_exchange_plan* plan) {
  return plans_of<tandem_exchange_plan>().destroy(plan);
}
