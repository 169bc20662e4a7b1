// Layers with experts in C.
#include "tandem/layer/experts.h"
#include "guard.h"
#include "layer/expert_sizes.h"

static_assert(TANDEM_ROWS_SORTED == static_cast<int>(tandem::ExpertLayout::kSorted) &&
              TANDEM_ROWS_IN_PLACE == static_cast<int>(tandem::ExpertLayout::kInPlace));
static_assert(TANDEM_WIRE_TYPE == static_cast<int>(tandem::ExpertWire::kType) &&
              TANDEM_WIRE_GIVEN == static_cast<int>(tandem::ExpertWire::kGiven));

static_assert(TANDEM_EXPERTS_BY_RULE == static_cast<int>(tandem::ExpertTransport::kRule) &&
              TANDEM_EXPERTS_BY_FUSED == static_cast<int>(tandem::ExpertTransport::kFused));

struct tandem_experts {
  tandem_world& world;
  std::unique_ptr<tandem::ExpertPlan> plan;
};

namespace {

using tandem::c::given;
using tandem::c::guarded;
using tandem::c::one_of;
using tandem::c::size_of_c;

tandem::c::Handles<tandem_experts>& expert_plans() {
  static auto& all = *new tandem::c::Handles<tandem_experts>("tandem_experts");  // never destroyed
  return all;
}

tandem::ExpertOptions options_of(const tandem_experts_problem& problem) {
  tandem::ExpertOptions options;
  options.type = tandem::c::type_of(problem.type);
  options.max_tokens = size_of_c(problem.max_tokens, "max_tokens");
  options.hidden = size_of_c(problem.hidden, "hidden");
  options.experts = problem.experts;
  options.top_k = problem.top_k;
  options.wire = static_cast<tandem::ExpertWire>(
      one_of(problem.wire, TANDEM_WIRE_TYPE, TANDEM_WIRE_GIVEN, "wire", "tandem_expert_wire"));
  options.layout = static_cast<tandem::ExpertLayout>(
      one_of(problem.layout, TANDEM_ROWS_SORTED, TANDEM_ROWS_IN_PLACE, "layout", "tandem_expert_layout"));
  if (problem.align != 0) options.align = size_of_c(problem.align, "align");
  options.most_rows = size_of_c(problem.most_rows, "most_rows");
  options.scales_by_group = tandem::c::flag(problem.scales_by_group, "scales_by_group");
  options.transport = static_cast<tandem::ExpertTransport>(one_of(
      problem.transport, TANDEM_EXPERTS_BY_RULE, TANDEM_EXPERTS_BY_FUSED, "transport", "tandem_expert_transport"));
  options.batches = problem.batches;
  if (problem.tp_size != 0) options.tp_size = problem.tp_size;
  return options;
}

/// Calls enqueue(plan, stream) in the order of the world's calls.
template <class Enqueue>
tandem_status enqueued(tandem_experts* experts, void* stream, const Enqueue& enqueue) {
  return guarded([&] {
    const auto made = expert_plans().at(experts, "experts");
    const tandem::c::InWorld world(&made->world);
    world->in_order(stream, [&](bool) {
      tandem::Stream borrowed = world->borrow_stream(stream);
      enqueue(*made->plan, borrowed);
    });
  });
}

}  // namespace

tandem_experts_sizes tandem::c::expert_sizes_in_c(const tandem::ExpertOptions& options, int pes) {
  alignas(16) static const std::int32_t origin = 0;  // only distances from it are used
  const tandem::ExpertSizes sizes = tandem::expert_sizes(options, pes);
  const tandem::ExpertRouting routing = tandem::expert_routing(options, pes, &origin);
  const auto at = [&](const void* array) {
    return static_cast<size_t>(reinterpret_cast<std::uintptr_t>(array) - reinterpret_cast<std::uintptr_t>(&origin));
  };
  return {.routing_bytes = static_cast<size_t>(sizes.routing_bytes),
          .rows = static_cast<size_t>(sizes.rows),
          .dispatched_rows = static_cast<size_t>(sizes.dispatched_rows),
          .tokens_at = at(routing.tokens),
          .counts_at = at(routing.counts),
          .starts_at = at(routing.starts),
          .slots_at = at(routing.slots),
          .ids_at = at(routing.ids),
          .places_at = at(routing.places),
          .weights_at = at(routing.weights),
          .id_stride = static_cast<size_t>(routing.id_stride),
          .choice_stride = static_cast<size_t>(routing.choice_stride)};
}

namespace {

tandem::RouteCall call_of(const tandem_experts_choices& c) {
  return {.tokens = size_of_c(c.tokens, "tokens"),
          .tokens_on_device = c.tokens_on_device,
          .ids = c.ids,
          .id_type = tandem::c::type_of(c.id_type, "id_type"),
          .weights = c.weights,
          .routing = c.routing};
}

tandem::DispatchCall call_of(const tandem_experts_rows& r) {
  return {.tokens = size_of_c(r.tokens, "tokens"),
          .x = r.x,
          .x_scales = r.x_scales,
          .routing = r.routing,
          .out = r.out,
          .out_scales = r.out_scales};
}

}  // namespace

tandem_status tandem_experts_create(tandem_experts** experts, tandem_world* world,
                                    const tandem_experts_problem* problem) {
  return guarded([&] {
    given(experts, "experts") = nullptr;
    const tandem::c::InWorld where(world);
    const tandem::ExpertOptions options = options_of(given(problem, "problem"));
    auto made = where->make_experts_plan(options);
    *experts =
        expert_plans().keep(std::unique_ptr<tandem_experts>(new tandem_experts{where.handle(), std::move(made)}));
    ++where.handle().plans;
  });
}

tandem_status tandem_experts_get_sizes(tandem_experts* experts, tandem_experts_sizes* sizes) {
  return guarded([&] {
    const auto made = expert_plans().at(experts, "experts");
    tandem_experts_sizes& to = given(sizes, "sizes");
    to = tandem::c::expert_sizes_in_c(made->plan->options(), made->world.world.pes());
  });
}

tandem_status tandem_experts_sizes_of(const tandem_experts_problem* problem, int pes, tandem_experts_sizes* sizes) {
  return guarded([&] {
    if (pes < 1) throw tandem::InvalidArgument(fmt::format("pes: {} given, allowed is 1 or more", pes));
    given(sizes, "sizes") = tandem::c::expert_sizes_in_c(options_of(given(problem, "problem")), pes);
  });
}

tandem_status tandem_experts_route(tandem_experts* experts, const tandem_experts_choices* choices, void* stream) {
  return enqueued(experts, stream, [&](tandem::ExpertPlan& plan, tandem::Stream& borrowed) {
    plan.route(borrowed, call_of(given(choices, "choices")));
  });
}

tandem_status tandem_experts_route_and_dispatch(tandem_experts* experts, const tandem_experts_choices* choices,
                                                const tandem_experts_rows* rows, void* stream) {
  return enqueued(experts, stream, [&](tandem::ExpertPlan& plan, tandem::Stream& borrowed) {
    plan.route_and_dispatch(borrowed, call_of(given(choices, "choices")), call_of(given(rows, "rows")));
  });
}

namespace {

using DispatchMember = void (tandem::ExpertPlan::*)(tandem::Stream&, const tandem::DispatchCall&);
using CombineMember = void (tandem::ExpertPlan::*)(tandem::Stream&, const tandem::CombineCall&);

tandem_status dispatched(tandem_experts* experts, const tandem_experts_rows* rows, void* stream, DispatchMember call) {
  return enqueued(experts, stream, [&](tandem::ExpertPlan& plan, tandem::Stream& borrowed) {
    (plan.*call)(borrowed, call_of(given(rows, "rows")));
  });
}

tandem_status combined(tandem_experts* experts, const tandem_experts_sums* sums, void* stream, CombineMember call) {
  return enqueued(experts, stream, [&](tandem::ExpertPlan& plan, tandem::Stream& borrowed) {
    const tandem_experts_sums& s = given(sums, "sums");
    (plan.*call)(borrowed,
                 {.tokens = size_of_c(s.tokens, "tokens"), .y = s.y, .routing = s.routing, .add = s.add, .out = s.out});
  });
}

}  // namespace

tandem_status tandem_experts_dispatch(tandem_experts* experts, const tandem_experts_rows* rows, void* stream) {
  return dispatched(experts, rows, stream, &tandem::ExpertPlan::dispatch);
}
tandem_status tandem_experts_dispatch_send(tandem_experts* experts, const tandem_experts_rows* rows, void* stream) {
  return dispatched(experts, rows, stream, &tandem::ExpertPlan::dispatch_send);
}
tandem_status tandem_experts_dispatch_receive(tandem_experts* experts, const tandem_experts_rows* rows, void* stream) {
  return dispatched(experts, rows, stream, &tandem::ExpertPlan::dispatch_receive);
}
tandem_status tandem_experts_combine(tandem_experts* experts, const tandem_experts_sums* sums, void* stream) {
  return combined(experts, sums, stream, &tandem::ExpertPlan::combine);
}
tandem_status tandem_experts_combine_send(tandem_experts* experts, const tandem_experts_sums* sums, void* stream) {
  return combined(experts, sums, stream, &tandem::ExpertPlan::combine_send);
}
tandem_status tandem_experts_combine_receive(tandem_experts* experts, const tandem_experts_sums* sums, void* stream) {
  return combined(experts, sums, stream, &tandem::ExpertPlan::combine_receive);
}

tandem_status tandem_experts_destroy(tandem_experts* experts) {
  return guarded([&] {
    if (experts == nullptr) return;
    tandem_world& world = expert_plans().at(experts, "experts")->world;
    const auto use = tandem::c::worlds().at(&world, "world");
    const auto current = tandem::c::current_unless_lost(use->world);
    expert_plans().destroy(experts, "experts", [](const tandem_experts&) {});
    --world.plans;
  });
}
