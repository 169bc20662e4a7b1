// merge_heads in C.
#include "layer/layer_plans.h"
#include "tandem/layer/merge_heads.h"

struct tandem_heads_plan : tandem::c::LayerPlan<tandem::MergeHeadsPlan> {
  static constexpr const char* kType = "tandem_heads_plan";
};

namespace {

using tandem::c::given;
using tandem::c::plans_of;
using tandem::c::size_of_c;

tandem::MergeHeadsOptions options_of(const tandem_heads_problem& problem) {
  using tandem::c::flag;
  tandem::MergeHeadsOptions options;
  options.type = tandem::c::type_of(problem.type);
  options.max_batch = size_of_c(problem.max_batch, "max_batch");
  options.heads = size_of_c(problem.heads, "heads");
  options.head_size = size_of_c(problem.head_size, "head_size");
  options.base = flag(problem.base_two, "base_two") ? tandem::LseBase::kTwo : tandem::LseBase::kE;
  options.own_heads = !flag(problem.all_heads, "all_heads");
  return options;
}

}  // namespace

tandem_status tandem_heads_plan_create(tandem_heads_plan** plan, tandem_world* world,
                                       const tandem_heads_problem* problem) {
  return plans_of<tandem_heads_plan>().create(plan, world, [&](tandem::World& on, bool) {
    return tandem::make_merge_heads(on, options_of(given(problem, "problem")));
  });
}

tandem_status tandem_heads_plan_run(tandem_heads_plan* plan, const tandem_heads_run* run, void* stream) {
  return plans_of<tandem_heads_plan>().run(plan, stream, [&](tandem::c::CWorld&, const auto&) {
    const tandem_heads_run& r = given(run, "run");
    return tandem::MergeHeadsCall{
        .batch = size_of_c(r.batch, "batch"), .partial = r.partial, .lse = r.lse, .out = r.out};
  });
}

tandem_status tandem_heads_plan_destroy(tandem_heads_plan* plan) { return plans_of<tandem_heads_plan>().destroy(plan); }
