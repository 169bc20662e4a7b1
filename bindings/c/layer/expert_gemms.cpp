// The products of a layer with experts in C.
#include "tandem/layer/expert_gemms.h"
#include "guard.h"
#include "layer/expert_sizes.h"

static_assert(TANDEM_EXPERT_FORM_BY_RULE == static_cast<int>(tandem::ExpertForm::kRule) &&
              TANDEM_EXPERT_OVERLAPPED == static_cast<int>(tandem::ExpertForm::kOverlapped));

struct tandem_expert_gemms {
  tandem_world& world;
  std::unique_ptr<tandem::ExpertGemmPlan> plan;
};

namespace {

using tandem::c::given;
using tandem::c::guarded;
using tandem::c::one_of;
using tandem::c::size_of_c;

tandem::c::Handles<tandem_expert_gemms>& gemm_plans() {
  static auto& all = *new tandem::c::Handles<tandem_expert_gemms>("tandem_expert_gemms");  // never destroyed
  return all;
}

tandem::ExpertForm form_of(tandem_expert_form value, const char* what) {
  return static_cast<tandem::ExpertForm>(
      one_of(value, TANDEM_EXPERT_FORM_BY_RULE, TANDEM_EXPERT_OVERLAPPED, what, "tandem_expert_form"));
}

tandem::ExpertGemmOptions options_of(const tandem_expert_gemms_problem& problem) {
  tandem::ExpertGemmOptions options;
  options.experts.type = tandem::c::type_of(problem.type);
  options.experts.max_tokens = size_of_c(problem.max_tokens, "max_tokens");
  options.experts.hidden = size_of_c(problem.hidden, "hidden");
  options.experts.experts = problem.experts;
  options.experts.top_k = problem.top_k;
  options.experts.wire = static_cast<tandem::ExpertWire>(
      one_of(problem.wire, TANDEM_WIRE_TYPE, TANDEM_WIRE_GIVEN, "wire", "tandem_expert_wire"));
  if (problem.tp_size != 0) options.experts.tp_size = problem.tp_size;
  options.intermediate = size_of_c(problem.intermediate, "intermediate");
  options.activation = static_cast<tandem::Activation>(
      one_of(problem.activation, TANDEM_NO_ACTIVATION, TANDEM_GEGLU, "activation", "tandem_activation"));
  options.dispatch_gemm = form_of(problem.dispatch_gemm, "dispatch_gemm");
  options.gemm_combine = form_of(problem.gemm_combine, "gemm_combine");
  options.communication_sms = problem.communication_sms == 0 ? -1 : problem.communication_sms;
  options.column_chunks = problem.column_chunks;
  return options;
}

/// Calls enqueue(plan, stream) in the order of the world's calls.
template <class Enqueue>
tandem_status enqueued(tandem_expert_gemms* gemms, void* stream, const Enqueue& enqueue) {
  return guarded([&] {
    const auto made = gemm_plans().at(gemms, "gemms");
    const tandem::c::InWorld world(&made->world);
    world->in_order(stream, [&](bool) {
      tandem::Stream borrowed = world->borrow_stream(stream);
      enqueue(*made->plan, borrowed);
    });
  });
}

}  // namespace

tandem_status tandem_expert_gemms_create(tandem_expert_gemms** gemms, tandem_world* world,
                                         const tandem_expert_gemms_problem* problem) {
  return guarded([&] {
    given(gemms, "gemms") = nullptr;
    const tandem::c::InWorld where(world);
    auto made = where->make_expert_gemms_plan(options_of(given(problem, "problem")));
    *gemms = gemm_plans().keep(
        std::unique_ptr<tandem_expert_gemms>(new tandem_expert_gemms{where.handle(), std::move(made)}));
    ++where.handle().plans;
  });
}

tandem_status tandem_expert_gemms_sizes_of(const tandem_expert_gemms_problem* problem, int pes,
                                           tandem_experts_sizes* sizes) {
  return guarded([&] {
    if (pes < 1) throw tandem::InvalidArgument(fmt::format("pes: {} given, allowed is 1 or more", pes));
    const tandem::ExpertGemmOptions options = options_of(given(problem, "problem"));
    tandem::expert_gemm_sizes(options, pes);  // throws for options that no plan can have
    given(sizes, "sizes") = tandem::c::expert_sizes_in_c(tandem::routing_options(options), pes);
  });
}

tandem_status tandem_expert_gemms_route(tandem_expert_gemms* gemms, const tandem_experts_choices* choices,
                                        void* stream) {
  return enqueued(gemms, stream, [&](tandem::ExpertGemmPlan& plan, tandem::Stream& borrowed) {
    const tandem_experts_choices& c = given(choices, "choices");
    plan.route(borrowed, {.tokens = size_of_c(c.tokens, "tokens"),
                          .tokens_on_device = c.tokens_on_device,
                          .ids = c.ids,
                          .id_type = tandem::c::type_of(c.id_type, "id_type"),
                          .weights = c.weights,
                          .routing = c.routing});
  });
}

tandem_status tandem_expert_gemms_dispatch(tandem_expert_gemms* gemms, const tandem_dispatch_gemm* call, void* stream) {
  return enqueued(gemms, stream, [&](tandem::ExpertGemmPlan& plan, tandem::Stream& borrowed) {
    const tandem_dispatch_gemm& c = given(call, "call");
    plan.dispatch_gemm(borrowed, {.tokens = size_of_c(c.tokens, "tokens"),
                                  .x = c.x,
                                  .routing = c.routing,
                                  .b = c.b,
                                  .rows = c.rows,
                                  .out = c.out,
                                  .x_scales = c.x_scales,
                                  .b_scales = c.b_scales,
                                  .row_scales = c.row_scales,
                                  .out_scales = c.out_scales});
  });
}

tandem_status tandem_expert_gemms_combine(tandem_expert_gemms* gemms, const tandem_gemm_combine* call, void* stream) {
  return enqueued(gemms, stream, [&](tandem::ExpertGemmPlan& plan, tandem::Stream& borrowed) {
    const tandem_gemm_combine& c = given(call, "call");
    plan.gemm_combine(borrowed, {.tokens = size_of_c(c.tokens, "tokens"),
                                 .a = c.a,
                                 .routing = c.routing,
                                 .b = c.b,
                                 .y = c.y,
                                 .add = c.add,
                                 .out = c.out,
                                 .a_scales = c.a_scales,
                                 .b_scales = c.b_scales});
  });
}

tandem_status tandem_expert_gemms_destroy(tandem_expert_gemms* gemms) {
  return guarded([&] {
    if (gemms == nullptr) return;
    tandem_world& world = gemm_plans().at(gemms, "gemms")->world;
    const auto use = tandem::c::worlds().at(&world, "world");
    const auto current = tandem::c::current_unless_lost(use->world);
    gemm_plans().destroy(gemms, "gemms", [](const tandem_expert_gemms&) {});
    --world.plans;
  });
}
